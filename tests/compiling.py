"""The emulated device as one on which some kernels are not compiled yet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuops.plan.work import Kernel
from tests import emulated


class Compiling:
    """Which kernels the device has: some from the beginning, the others once the test says that they are ready."""

    def __init__(self, early: Callable[[Kernel], bool], monkeypatch: pytest.MonkeyPatch) -> None:
        self.early, self.ready = early, False
        self.begun: list[Kernel] = []
        self.launched: list[Kernel] = []
        launch = emulated.EmulatedDevice.launch

        def launched(device, step, *more):
            self.launched.append(step.kernel)
            return launch(device, step, *more)

        monkeypatch.setattr(emulated.DEVICE, "there", self.there)
        monkeypatch.setattr(emulated.DEVICE, "begin", self.begin)
        monkeypatch.setattr(emulated.EmulatedDevice, "launch", launched)

    def there(self, kernels: list[Kernel]) -> bool:
        return self.ready or all(map(self.early, kernels))

    def begin(self, kernels: list[Kernel]) -> bool:
        new = [kernel for kernel in kernels if kernel not in self.begun]
        self.begun += new
        return bool(new)

    def names(self) -> list[str]:
        """The names of the kernels that were launched."""
        return [kernel.name for kernel in self.launched]
