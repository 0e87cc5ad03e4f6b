"""Options, the hub each test talks to, and the clients of a test."""

import os
import pathlib

import pytest

from harness.beta import NEWEST  # isort: skip (it names the package the others import)
from harness.conformance import MARK, Report
from harness.hubs import ROOT, Elsewhere, Parley, Upstream
from harness.party import Party


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hub", choices=["parley", "upstream"], default="parley", help="which hub to start")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(statement, clause): a numbered statement this test holds")
    config.addinivalue_line("markers", "parley: AG2's own hub does otherwise; the test says what")
    config.addinivalue_line("markers", "newest: needs the newest AG2")
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.keyword
    counts = NEWEST and whole and config.getoption("--hub") == "parley" and not config.option.collectonly
    path = ROOT / "build" / "conformance" / "ag2.jsonl" if counts else None
    config.pluginmanager.register(Report(path), "conformance")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Against AG2's own hub, what only ours does is not run at all."""
    if config.getoption("--hub") == "parley":
        return
    ours = [item for item in items if item.get_closest_marker("parley")]
    config.hook.pytest_deselected(items=ours)
    items[:] = [item for item in items if item not in ours]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def ours(request: pytest.FixtureRequest) -> bool:
    """Whether the hub is parley."""
    return request.config.getoption("--hub") == "parley"


@pytest.fixture(scope="session")
def new_hub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Starts hubs of the chosen kind; all are ended with the session."""
    make = {"parley": Parley, "upstream": Upstream}[request.config.getoption("--hub")]
    started = []

    def start(**options):
        hub = make(pathlib.Path(tmp_path_factory.mktemp("hub")) / "data", **options)
        started.append(hub)
        return hub.start()

    yield start
    for hub in started:
        hub.kill()


@pytest.fixture(scope="session")
def shared_hub(new_hub):
    """The hub of every test that needs none of its own."""
    url = os.environ.get("PARLEY_INTEROP_URL")
    return Elsewhere(url) if url else new_hub()


@pytest.fixture
async def party(shared_hub, ours, anyio_backend):
    party = Party(shared_hub.url)
    party.ours = ours
    yield party
    await party.close()


@pytest.fixture
def own_hub(new_hub):
    """A hub that the test may kill."""
    hub = new_hub()
    yield hub
    hub.kill()


@pytest.fixture
async def own_party(own_hub, anyio_backend):
    party = Party(own_hub.url)
    yield party
    await party.close()
