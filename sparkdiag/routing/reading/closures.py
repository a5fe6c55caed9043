"""What an inner function sees of the function around it."""

from sparkdiag.routing.reading.bodies import stored_names
from sparkdiag.routing.reading.context import Context, Frame
from sparkdiag.routing.values.domain import AnyValue, fresh
from sparkdiag.routing.values.state import State


def closure_of(context: Context, frame: Frame, state: State) -> tuple[tuple[str, AnyValue], ...]:
    """An inner function sees what its names hold when it is called: of those that change, nothing is known."""
    stored = stored_names(context.chain[-1].node) if context.chain else {}
    changing = {name for name in state.names if stored.get(name, 0) > 1} | frame.shared
    own = ((name, fresh(name) if name in changing else value) for name, value in state.names.items())
    return (*own, *frame.enclosing)
