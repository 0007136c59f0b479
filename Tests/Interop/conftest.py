"""What the tests share: a running Belfry, its stand-ins' control API, and trust in its CA."""

import types

import pytest

from support.emulator import Emulator
from support.process import BINARY, Belfry


def pytest_configure(config):
    if not BINARY:
        pytest.exit("BELFRY_BINARY names no belfry; run the tests with script/interop", 2)


@pytest.fixture(scope="module")
def stack():
    """`belfry up`: a hub and the push services' stand-ins, one for each file of tests.

    `addresses` is what it printed, `emulator` the control API, `process` the `Belfry`.
    """
    process = Belfry("up", "--port", "0")
    yield types.SimpleNamespace(
        process=process,
        addresses=process.addresses,
        emulator=Emulator(process.addresses["emulator"]["control"]),
    )
    process.stop()


@pytest.fixture(scope="module")
def standins():
    """`belfry emulator`: the stand-ins alone; members as of `stack`."""
    process = Belfry("emulator", "--port", "0")
    yield types.SimpleNamespace(
        process=process,
        addresses=process.addresses,
        emulator=Emulator(process.addresses["control"]),
    )
    process.stop()


@pytest.fixture
def trusted(standins, monkeypatch):
    """Makes `requests` and `httpx` trust the stand-ins' CA, as an operator's environment would."""
    authority = standins.addresses["ca"]
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority)
    monkeypatch.setenv("SSL_CERT_FILE", authority)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """What waits most is begun first and looked at last, so that the others run meanwhile."""
    waiting = [i for i in items if i.module.__name__ == "test_http2_server_that_misbehaves"]
    rest = [item for item in items if item not in waiting]
    items[:] = waiting[:1] + rest + waiting[1:]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Shows what Belfry wrote beside a failure."""
    report = (yield).get_result()
    if report.failed:
        for name in ("stack", "standins", "runs"):
            running = item.funcargs.get(name) if hasattr(item, "funcargs") else None
            if running is not None:
                process = running.process
                try:
                    report.sections.append((f"standard error of {process.name}", process.log()))
                except ValueError:
                    pass  # It has been ended, and its log is in the failure.
