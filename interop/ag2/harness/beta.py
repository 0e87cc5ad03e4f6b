"""Lets the same tests run on AG2 0.14, whose package is autogen.beta.

Importing this makes `import ag2…` give `autogen.beta…`, the very same module
objects, where no package ag2 is installed. Nothing is replaced or patched.
"""

import importlib
import importlib.abc
import importlib.util
import sys


class _Renamed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name == "ag2" or name.startswith("ag2."):
            return importlib.util.spec_from_loader(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return importlib.import_module("autogen.beta" + spec.name.removeprefix("ag2"))

    def exec_module(self, module):
        """It has been executed under its own name."""


NEWEST = importlib.util.find_spec("ag2") is not None
if not NEWEST:
    sys.meta_path.insert(0, _Renamed())
