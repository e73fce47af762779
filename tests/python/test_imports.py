"""The package's modules import each other in one direction: no circle, whether an import stands in a function or not."""

import ast
import graphlib
from pathlib import Path

import gpuconv


def test_no_circle_of_imports():
    folder = Path(gpuconv.__file__).parent
    modules = {file.stem: ast.parse(file.read_text()) for file in folder.glob("*.py")}
    imports = {name: set() for name in modules}
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                found = [node.module] if node.module else [alias.name for alias in node.names]
                imports[name].update(module for module in found if module in modules)
    assert any(imports.values())
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError with a circle
