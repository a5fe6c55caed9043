"""The two names that sparkdiag's probe looks at."""


class GroupCoordinator:
    def __init__(self, world_size: int, rank_in_group: int) -> None:
        self.world_size = world_size
        self.rank_in_group = rank_in_group


_TP: "GroupCoordinator | None" = None
_DCP: "GroupCoordinator | None" = None
