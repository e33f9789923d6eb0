"""Settings: where they come from, and what a wrong one says."""

import re
from pathlib import Path

import pytest

from waybook.adapters.embedded import Given
from waybook.adapters.memory.objects import MemoryObjects
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.effect_settings import effect_adapters
from waybook.services.bootstrap.settings import Settings


def _file(folder: Path, text: str) -> Path:
    path = folder / "waybook.toml"
    path.write_text(text)
    return path


def test_without_file_and_variables_everything_is_embedded_and_has_its_default(tmp_path: Path) -> None:
    settings = Settings.load({}, tmp_path)
    assert settings == Settings()
    assert settings.given == Given()
    assert (settings.tenant, settings.mailbox, settings.ack_wait_s) == ("main", "inbox", 60.0)
    assert (settings.slots, settings.executions) == (64, 32)


def test_a_variable_outranks_the_file_and_an_empty_one_counts_for_nothing(tmp_path: Path) -> None:
    _file(tmp_path, 'slots = 8\nack_wait_s = 5\ntenant = "file"\nnats_url = "nats://file"')
    environ = {"WAYBOOK_SLOTS": "16", "WAYBOOK_TENANT": "", "WAYBOOK_NATS_URL": "nats://variable", "OTHER": "x"}
    settings = Settings.load(environ, tmp_path)
    assert (settings.slots, settings.ack_wait_s, settings.tenant) == (16, 5.0, "file")
    assert settings.given == Given(nats_url="nats://variable")


def test_the_file_can_be_elsewhere_and_its_relative_folder_counts_from_it(tmp_path: Path) -> None:
    path = _file(tmp_path, 'data_dir = "data"')
    settings = Settings.load({"WAYBOOK_CONFIG": str(path)}, Path("/"))
    assert settings.directory().path == tmp_path / "data"
    assert settings.directory("/given").path == Path("/given")
    assert Settings.load({"WAYBOOK_CONFIG": str(path), "WAYBOOK_DATA_DIR": "/v"}).directory().path == Path("/v")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slot = 8", r"waybook\.toml: there is no setting `slot`; did you mean `slots`\?"),
        ("zzz = 8", r"there is no setting `zzz`; there are ack_wait_s, agents, data_dir"),
        ('slots = "8"', r"waybook\.toml: `slots` cannot be '8'"),
        ("slots = 0", r"`slots` cannot be 0"),
        ("nats_url = 4222", r"`nats_url` cannot be 4222"),
        ('tenant = "a.b"', r"`tenant` cannot be 'a\.b'"),
        ("slots = =", r"waybook\.toml is no valid TOML: .*line 1"),
    ],
)
def test_a_wrong_file_names_itself_and_the_key(tmp_path: Path, text: str, said: str) -> None:
    _file(tmp_path, text)
    with pytest.raises(InvalidInput, match=said):
        Settings.load({}, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"), [("WAYBOOK_SLOTS", "many"), ("WAYBOOK_ACK_WAIT_S", "0"), ("WAYBOOK_TENANT", "a b")]
)
def test_a_wrong_variable_is_named_with_its_value(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} cannot be '{value}'"):
        Settings.load({name: value}, tmp_path)


def test_a_file_that_is_named_and_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"WAYBOOK_CONFIG names .*nowhere\.toml"):
        Settings.load({"WAYBOOK_CONFIG": str(tmp_path / "nowhere.toml")})


@pytest.mark.parametrize("port", [-1, 0, 9477])
def test_an_option_s_port_outranks_the_settings_and_none_leaves_them(port: int) -> None:
    settings = Settings.load({"WAYBOOK_METRICS_PORT": "9000"})
    assert settings.with_metrics_port(None).metrics_port == 9000
    assert settings.with_metrics_port(port).metrics_port == port


@pytest.mark.parametrize("port", [-2, 65_535])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    """The projector takes the next one, so the last port of all is none either."""
    with pytest.raises(InvalidInput, match=f"--metrics-port cannot be {port}"):
        Settings().with_metrics_port(port)


def test_an_inbox_prefix_cannot_be_any_subject() -> None:
    """A walker answers under `_INBOX...` only."""
    assert Settings.load({"WAYBOOK_NATS_INBOX_PREFIX": "_INBOX_walker"}).nats_inbox_prefix == "_INBOX_walker"
    with pytest.raises(InvalidInput, match="WAYBOOK_NATS_INBOX_PREFIX"):
        Settings.load({"WAYBOOK_NATS_INBOX_PREFIX": "state.g1"})


def test_adapters_of_side_effects_stand_in_the_file_and_their_secrets_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the guide shows is read as it stands."""
    guide = (Path(__file__).parents[3] / "docs" / "side-effects.md").read_text(encoding="utf-8")
    (tables,) = re.findall(r"^```toml\n(.*?)^```", guide, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "waybook.toml").write_text(tables, encoding="utf-8")
    effects = Settings.load({}, tmp_path).effects
    with pytest.raises(InvalidInput, match="effect mail: the environment variable MAIL_PASSWORD is not set"):
        effect_adapters(effects, MemoryObjects())
    monkeypatch.setenv("MAIL_PASSWORD", "p")
    monkeypatch.setenv("TICKETS_AUTHORIZATION", "t")
    built = effect_adapters(effects, MemoryObjects())
    assert {name: type(one).__name__ for name, one in built.items()} == {
        "mail": "SmtpSend", "ticket": "HttpCall", "file": "FileWrite",
    }  # fmt: skip
    (tmp_path / "waybook.toml").write_text('[effects.mail]\nadapter = "fax"\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="effects"):
        Settings.load({}, tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[replies.hours]\nopens = "8:00"', "opens has to be HH:MM, not '8:00'"),
        ('[replies.hours]\nzone = "Europe/Berln"', "there is no time zone 'Europe/Berln'"),
        ("[replies.hours]\ndays = [1, 7]", "days are numbers from 0"),
        ('[replies.hours]\nclose = "17:00"', "unknown field `close`"),
        ('[[replies.rules]]\ncategory = "suport"', "there is no category 'suport'"),
        ('[[replies.rules]]\ncategory = "support"\ntreshold = 0.9', "unknown field `treshold`"),
        ('[[replies.rules]]\ncategory = "support"\nthreshold = 90', "a threshold from 0 to 1"),
        ("[replies.breaker]\nbounces = 10", "shares over 0, up to 1"),
    ],
)
def test_what_lets_replies_leave_is_refused_where_it_cannot_be_meant(tmp_path: Path, text: str, said: str) -> None:
    """Hours that nobody can read would be no hours at all, and a threshold by another name none."""
    _file(tmp_path, text)
    with pytest.raises(InvalidInput, match=said):
        Settings.load({}, tmp_path)


def test_addresses_by_which_mails_are_sent_are_our_own(tmp_path: Path) -> None:
    """A mail of theirs that comes back to us is never answered, named or not."""
    _file(
        tmp_path,
        'own_addresses = ["us@ours.example"]\n[effects.mail]\nadapter = "smtp"\nhost = "h"\n'
        'sender = "Help <help@ours.example>"',
    )
    assert Settings.load({}, tmp_path).never_answered == ("us@ours.example", "help@ours.example")
