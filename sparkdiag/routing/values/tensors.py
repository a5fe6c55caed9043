"""Shapes and dtypes through attributes, methods and slices of tensors, as torch defines them. Pure."""

from collections.abc import Sequence

from sparkdiag.routing.values.domain import AnyValue, External, Items, Known, Tensor, fresh
from sparkdiag.routing.values.sizes import BYTES, as_span, calculated

SAME = frozenset({
    "contiguous", "clone", "cuda", "cpu", "detach", "requires_grad_", "pin_memory", "to_dense", "abs", "relu",
    "sigmoid", "exp", "neg", "masked_fill", "clamp",
})  # fmt: skip
"""Methods that keep shape and dtype."""
CAST = {"float": "torch.float32", "half": "torch.float16", "bfloat16": "torch.bfloat16", "int": "torch.int32",
        "long": "torch.int64", "double": "torch.float64", "bool": "torch.bool"}  # fmt: skip
INDICES = ("torch.int64", "torch.int32")
"""Dtypes of a tensor that picks along a dimension; a boolean one would be a mask."""
MADE = frozenset({
    "empty", "zeros", "ones", "full",
})  # fmt: skip
LIKE = frozenset({
    "empty_like", "zeros_like", "ones_like", "full_like",
})  # fmt: skip


def attribute(tensor: Tensor, name: str) -> AnyValue | None:
    """``tensor.name`` where it can be told; None else."""
    match name:
        case "shape" if tensor.shape is not None:
            return Items(tensor.shape, "tuple", tensor.because)
        case "shape":
            return fresh("shape", "the shape is not known", tensor=False)
        case "ndim":
            return _rank(tensor)
        case "dtype" if tensor.dtype is not None:
            return External(tensor.dtype, tensor.because)
        case "dtype" | "device" | "is_cuda" | "layout":
            return fresh(name, f"the tensor's {name} is not known", tensor=False)
        case "itemsize":
            return _bytes(tensor.dtype)
        case "T" | "mT" if tensor.shape is not None:
            return Tensor(tuple(reversed(tensor.shape)), tensor.dtype)
        case "data":
            return tensor
        case _:
            return None


def _rank(tensor: Tensor) -> AnyValue:
    if tensor.shape is None:
        return fresh("rank", "the number of dimensions is not known", tensor=False)
    return Known(len(tensor.shape), f"{len(tensor.shape)} dimensions")


def _bytes(dtype: str | None) -> AnyValue:
    size = BYTES.get((dtype or "").removeprefix("torch."))
    return Known(size) if size is not None else fresh("itemsize", "the dtype is not known", tensor=False)


def itemsize(dtype: str) -> Known | None:
    """Bytes an element of a dtype written as ``torch.float32``; None for what is no dtype."""
    size = BYTES.get(dtype.removeprefix("torch."))
    return Known(size) if size is not None else None


def method(tensor: Tensor, name: str, arguments: Sequence[AnyValue]) -> AnyValue:
    """``tensor.name(*arguments)``: a tensor of unknown shape for what is not known here."""
    shape = tensor.shape
    match name:
        case "dim" | "ndimension":
            return _rank(tensor)
        case "size" if not arguments:
            return attribute(tensor, "shape") or tensor
        case "size":
            return item(Items(shape), arguments[0]) if shape is not None else fresh("size", tensor=False)
        case "numel" | "nelement" if shape is not None:
            return _product(shape)
        case "element_size":
            return _bytes(tensor.dtype)
        case "stride" | "storage_offset" | "data_ptr" | "is_contiguous" | "item" | "tolist" | "numel" | "any" | "all":
            return fresh(name, f"what .{name}() gives is not known", tensor=name in ("any", "all"))
        case "view" if len(arguments) == 1 and isinstance(arguments[0], External):
            return Tensor(shape, arguments[0].name)
        case "to" | "type" if arguments and isinstance(arguments[0], External) and itemsize(arguments[0].name):
            return Tensor(shape, arguments[0].name)
        case "to":
            return Tensor(shape, None)
        case "view" | "reshape" | "expand":
            return _viewed(tensor, arguments)
        case "unsqueeze" | "squeeze" | "transpose":
            return _moved(tensor, name, arguments)
        case _ if name in CAST:
            return Tensor(shape, CAST[name])
        case _ if name in SAME or (name.endswith("_") and not name.endswith("__")):
            return tensor
        case _:
            return Tensor()


def _product(shape: tuple[AnyValue, ...]) -> AnyValue:
    total: AnyValue = Known(1)
    for size in shape:
        total = calculated("Mult", total, size)
    return total


def _viewed(tensor: Tensor, arguments: Sequence[AnyValue]) -> Tensor:
    sizes = arguments[0].items if len(arguments) == 1 and isinstance(arguments[0], Items) else tuple(arguments)
    known = [as_span(size) for size in sizes]
    if any(isinstance(size, Tensor) for size in sizes):
        return Tensor()
    return Tensor(
        tuple(
            size if bound is not None and bound.low >= 0 else fresh("size", tensor=False)
            for size, bound in zip(sizes, known, strict=True)
        ),
        tensor.dtype,
    )


def _moved(tensor: Tensor, name: str, arguments: Sequence[AnyValue]) -> Tensor:
    places = [value.value for value in arguments if isinstance(value, Known) and isinstance(value.value, int)]
    if tensor.shape is None or len(places) != len(arguments) or not places:
        return Tensor(None, tensor.dtype)
    shape = list(tensor.shape)
    rank = len(shape) + (name == "unsqueeze")
    if any(not -rank <= place < rank for place in places):
        return Tensor(None, tensor.dtype)
    if name == "unsqueeze":
        shape.insert(places[0] % rank, Known(1))
    elif name == "transpose" and len(places) == 2:
        shape[places[0]], shape[places[1]] = shape[places[1]], shape[places[0]]
    elif name == "squeeze":
        size = as_span(shape[places[0]])
        if size is None or size.low <= 1 <= size.high:
            if size is None or size.low != size.high:
                return Tensor(None, tensor.dtype)
            del shape[places[0] % rank]
    else:
        return Tensor(None, tensor.dtype)
    return Tensor(tuple(shape), tensor.dtype)


def item(holder: Items, index: AnyValue) -> AnyValue:
    """``holder[index]`` of a tuple."""
    if isinstance(index, Known) and isinstance(index.value, int):
        if -len(holder.items) <= index.value < len(holder.items):
            return holder.items[index.value]
        return fresh("item", "the tuple is shorter than that")
    return fresh("item", "the index is not known")


def sliced(tensor: Tensor, parts: Sequence[object]) -> Tensor:
    """``tensor[parts]``: each part a ``slice`` of values, None for a new dimension, or an index."""
    if tensor.shape is None or any(part is Ellipsis for part in parts):
        return Tensor(None, tensor.dtype)
    left: list[AnyValue] = list(tensor.shape)
    shape: list[AnyValue] = []
    for part in parts:
        if part is None:
            shape.append(Known(1))
        elif left and isinstance(part, Tensor) and part.shape is not None and len(parts) == 1 and part.dtype in INDICES:
            shape += [*part.shape]
            left.pop(0)
        elif not left or isinstance(part, Tensor | Items):
            return Tensor(None, tensor.dtype)
        elif isinstance(part, slice):
            shape.append(_length(left.pop(0), part))
        elif isinstance(part, Known) and isinstance(part.value, int):
            left.pop(0)
        else:
            return Tensor(None, tensor.dtype)
    return Tensor((*shape, *left), tensor.dtype)


def _length(size: AnyValue, part: slice) -> AnyValue:
    """Elements that a slice of a dimension has. A stop beyond the dimension is not followed: it is not known to be."""
    if part.step is not None:
        return fresh("size", tensor=False)
    start = as_span(part.start) if part.start is not None else as_span(Known(0))
    stop = as_span(part.stop if part.stop is not None else size)
    if start is None or stop is None or start.low < 0 or stop.low < 0:
        return fresh("size", "the slice's bounds are not known", tensor=False)
    end = part.stop if part.stop is not None else size
    return end if start.low == start.high == 0 else calculated("Sub", end, part.start)


def made(arguments: Sequence[AnyValue], keywords: dict[str, AnyValue]) -> Tensor:
    """What ``torch.empty``, ``zeros``, ``ones`` and ``full`` give."""
    size = keywords.get("size", arguments[0] if arguments else None)
    sizes = size.items if isinstance(size, Items) else tuple(arguments)
    dtype = keywords.get("dtype")
    name = dtype.name if isinstance(dtype, External) else None
    return Tensor(sizes if all(as_span(one) is not None for one in sizes) and sizes else None, name)
