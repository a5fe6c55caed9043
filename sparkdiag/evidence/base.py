"""The base of every evidence value and the schema number that top-level documents carry."""

from pydantic import BaseModel, ConfigDict

SCHEMA = 1
"""Version of the run folder's formats. Raised when a reader of the old one would misread the new one."""


class Value(BaseModel):
    """A frozen value that survives a round trip through JSON.

    Unknown keys are ignored, so that a newer run folder still opens; missing ones raise ``pydantic.ValidationError``.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)
