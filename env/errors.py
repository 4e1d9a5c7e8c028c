"""Errors a user can meet.

    NavigatorError                 (ValueError; the command line prints it as one line)
    ├── InputError                 a file or line that cannot be read          exit 2
    ├── SettingError               a setting that is unknown or out of range   exit 2
    ├── EnvironmentFull            no disk, no memory, no free slot            exit 2
    └── EngineDied                 the inference engine stopped answering      exit 3

Anything else that escapes is a bug and keeps its traceback.
"""


class NavigatorError(ValueError):
    """Root of the tree: the message says what was given, what was expected and what mends it."""

    exit_code = 2


class InputError(NavigatorError):
    """A file, or one line of it, is not what it should be; the message begins with `path:line:`."""


class SettingError(NavigatorError):
    """A configuration value is unknown, ill-typed or out of range; the message names the key."""


class EnvironmentFull(NavigatorError):
    """A resource of this machine is used up."""


class EngineDied(NavigatorError):
    """The inference engine stopped; what was finished before is kept."""

    exit_code = 3
