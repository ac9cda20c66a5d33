"""One table drives flags, variables, config keys and trust: admin's args > admin's env > profile > default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from execcred import ADMIN, PROFILE, ExecCredError, Setting
from execcred._arguments import command_line, nearest
from execcred._settings import COMMON, Settings, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TABLE = (
    Setting("secret-name", "a text of the profile's", config=("name",), trust=PROFILE, aliases=("i",)),
    Setting("role-arn", "an identity", env=("ROLE", "OLD_ROLE"), trust="allow-identity"),
    Setting("namespace", "the consumer's own", trust="allow-namespace", own=True),
    Setting("allow-identity", "a guard", kind="flag", guard=True),
    Setting("allow-namespace", "a guard with values", kind="list", guard=True),
    Setting("wait", "a duration", kind="seconds", default=5.0, trust=PROFILE),
    Setting("mode", "a choice", kind="choice", choices=("off", "warn"), default="off", aliases=("loud=warn",)),
    Setting("scopes", "a list", kind="list", trust=PROFILE),
    Setting("discover", "a flag", kind="flag", trust=PROFILE),
    Setting("endpoint", "the admin's alone"),
    Setting("context", "no config key", config=None, trust=ADMIN),
    *COMMON,
)


def settle(
    *arguments: str, variables: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None
) -> Settings:
    """Resolve the test's table."""
    return resolve(TABLE, command_line(TABLE, arguments), variables or {}, config or {})


def refused(
    *arguments: str, variables: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None
) -> ExecCredError:
    """Resolve the test's table, which must fail."""
    with pytest.raises(ExecCredError) as caught:
        settle(*arguments, variables=variables, config=config)
    return caught.value


# --- names ---


def test_one_name_gives_a_flag_a_variable_and_a_config_key() -> None:
    setting = Setting("secret-name-template", "")
    assert [setting.env, setting.config] == [("EXECCRED_SECRET_NAME_TEMPLATE",), ("secretNameTemplate",)]


@pytest.mark.parametrize(
    ("arguments", "variables", "config"),
    [
        (["--secret-name", "x"], {}, {}),
        (["--secret-name=x"], {}, {}),
        (["-secret-name", "x"], {}, {}),
        (["-secret-name=x"], {}, {}),
        (["-i", "x"], {}, {}),
        (["--i=x"], {}, {}),
        ([], {"EXECCRED_SECRET_NAME": "x"}, {}),
        ([], {}, {"secretName": "x"}),
        ([], {}, {"name": "x"}),
        (["--profile-args", "--secret-name=x"], {}, {}),
        (["-profile-args", "-i=x"], {}, {}),
    ],
)
def test_every_spelling_sets_the_same(
    arguments: Sequence[str], variables: Mapping[str, str], config: Mapping[str, Any]
) -> None:
    assert settle(*arguments, variables=variables, config=config).text("secret-name") == "x"


# --- precedence ---

LEVELS: tuple[tuple[str, list[str], dict[str, str], dict[str, str], str], ...] = (
    ("flag --secret-name", ["--secret-name=arg"], {}, {}, "arg"),
    ("variable EXECCRED_SECRET_NAME", [], {"EXECCRED_SECRET_NAME": "env"}, {}, "env"),
    ("profile flag --secret-name", ["--profile-args", "--secret-name=sealed"], {}, {}, "sealed"),
    ("config key secretName", [], {}, {"secretName": "config"}, "config"),
)


@pytest.mark.parametrize("winner", range(len(LEVELS)))
def test_admin_args_beat_admin_env_beats_sealed_args_beat_config(winner: int) -> None:
    arguments: list[str] = []
    variables: dict[str, str] = {}
    config: dict[str, str] = {}
    for _, level_arguments, level_variables, level_config, _ in LEVELS[winner:]:
        arguments += level_arguments
        variables |= level_variables
        config |= level_config
    settings = settle(*arguments, variables=variables, config=config)
    assert [settings.source("secret-name"), settings.text("secret-name")] == [LEVELS[winner][0], LEVELS[winner][4]]
    assert settings.from_profile("secret-name") is (winner >= 2)
    assert settings.given("secret-name")


def test_what_nobody_sets_is_the_default_or_empty() -> None:
    settings = settle()
    assert [settings.seconds("wait"), settings.source("wait"), settings.given("wait")] == [5.0, "default", False]
    assert [settings.text("secret-name"), settings.source("secret-name")] == ["", ""]
    assert [settings.flag("discover"), settings.items("scopes"), settings.seconds("nothing")] == [False, (), 0.0]


def test_the_first_of_several_native_variables_wins_and_an_empty_one_counts_as_unset() -> None:
    assert settle(variables={"EXECCRED_ROLE_ARN": "", "ROLE": "a", "OLD_ROLE": "b"}).source("role-arn") == (
        "variable ROLE"
    )


@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_value_in_the_config_counts_as_unset(value: object) -> None:
    settings = settle(config={"secretName": value, "name": "x", "wait": value, "endpoint": value})
    assert [settings.text("secret-name"), settings.seconds("wait")] == ["x", 5.0]


def test_config_keys_that_nobody_knows_are_ignored() -> None:
    assert settle(config={"future": {"a": 1}, "context": "x", "version": "1.36", "help": 1}).text("context") == ""


# --- the command line ---


def test_of_a_flag_repeated_hundreds_of_times_the_last_wins() -> None:
    arguments = [text for number in range(300) for text in ("--secret-name", f"s{number}", f"--scopes=a,{number}")]
    settings = settle(*arguments)
    assert [settings.text("secret-name"), settings.items("scopes")] == ["s299", ("a", "299")]


def test_sealed_args_that_grow_at_each_reconcile_do_no_harm() -> None:
    settings = settle("--secret-name=own", *["--profile-args", "--scopes=a", "--secret-name=theirs"] * 300)
    assert [settings.text("secret-name"), settings.items("scopes")] == ["own", ("a",)]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--secret"], "unknown flag --secret"),
        (["--Secret-Name=x"], "unknown flag --Secret-Name"),
        (["---secret-name=x"], "unknown flag ---secret-name"),
        (["--profile-args=x"], "unknown flag --profile-args"),
        (["-x"], "unknown flag -x"),
        (["--evil\n\x1b[31m=x"], "unknown flag --evil??[31m"),
        (["--secret-name"], "flag --secret-name needs a value"),
        (["--secret-name="], "flag --secret-name needs a value"),
        (["--secret-name", "--wait", "5"], "flag --secret-name needs a value"),
        (["--secret-name", "--profile-args"], "flag --secret-name needs a value"),
        (["--secret-name", ""], "flag --secret-name needs a value"),
        (["--allow-namespace="], "flag --allow-namespace needs a value"),
        (["--discover="], "flag --discover needs a value"),
    ],
)
def test_a_flag_that_cannot_be_read_is_bad_usage(arguments: Sequence[str], why: str) -> None:
    error = refused(*arguments)
    assert [error.code, error.exit_status] == ["usage", 2]
    assert why in error.message


def test_a_value_that_begins_with_a_dash_needs_the_equals_sign() -> None:
    assert "--secret-name=VALUE" in refused("--secret-name", "-x").hint
    assert settle("--secret-name=-x").text("secret-name") == "-x"
    assert settle("--secret-name=--profile-args").text("secret-name") == "--profile-args"


def test_an_alias_may_imply_a_value() -> None:
    assert settle("--loud").text("mode") == "warn"
    assert settle("--token-only").text("output") == "token"


def test_words_are_collected_and_take_no_part_in_settings() -> None:
    assert command_line(TABLE, ["get-token", "--discover", "true", "-", "--"]).words == ["get-token", "true", "-", "--"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [("secretname", "secret-name"), ("name-space", "namespace"), ("timout", "timeout"), ("n", "namespace")],
)
def test_the_nearest_flag_is_named(asked: str, found: str) -> None:
    assert nearest(asked, [setting.name for setting in TABLE]) == found
    assert f"--{found}" in refused(f"--{asked}=x").hint


@pytest.mark.parametrize("asked", ["", "x", "é", "\0"])
def test_nothing_is_suggested_for_what_is_like_no_flag(asked: str) -> None:
    assert nearest(asked, ["one", "two"]) == ""
    assert refused(f"--{asked}\0=x").hint == "see --help"


# --- values ---


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("8", 8), ("1.5", 1.5), ("30s", 30), ("2m", 120), ("2m30s", 150), ("500ms", 0.5), ("1h1m1.5s", 3661.5)],
)
def test_durations_are_seconds_or_go_durations(text: str, seconds: float) -> None:
    assert settle("--wait", text).seconds("wait") == seconds
    assert settle(config={"wait": text}).seconds("wait") == seconds


@pytest.mark.parametrize("value", [8, 8.0, "8"])
def test_a_config_may_give_seconds_as_number_or_text(value: object) -> None:
    assert settle(config={"wait": value}).seconds("wait") == 8.0


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "0s",
        "+5",
        "1e3",
        "5 s",
        "s",
        "5d",
        "86401",
        "25h",
        "٥",
        "²",
        "5\u200b",
        "9" * 400,
        "inf",
        "nan",
        "0x10",
        ".",
        ".5s",
        "1.s",
        "1..5s",
        "1s2",
        "5i",
        "5S",
    ],
)
def test_other_durations_are_refused_without_repeating_them(text: str) -> None:
    error = refused(f"--wait={text}")
    assert [error.code, error.exit_status] == ["setting-invalid", 2]
    wanted = "seconds or a duration such as 8, 30s or 2m, more than 0 and at most a day"
    holds = "holds a control character or is not UTF-8"
    assert error.message in (f"flag --wait must be {wanted}", f"flag --wait {holds}")


@pytest.mark.parametrize("value", [0, -1, 1e400, 10**400, 1e22, 1e-7])
def test_numbers_beyond_a_day_or_below_nothing_are_refused(value: float) -> None:
    assert refused(config={"wait": value}).code == "setting-invalid"


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("1", True), ("t", True), ("yes", True), ("false", False), ("0", False)],
)
def test_a_flag_reads_the_words_that_go_reads(text: str, value: bool) -> None:
    assert settle(f"--discover={text}").flag("discover") is value
    assert settle(variables={"EXECCRED_DISCOVER": text}).flag("discover") is value


def test_a_bare_flag_is_true_and_a_config_gives_a_boolean() -> None:
    assert settle("--discover").flag("discover")
    assert settle(config={"discover": True}).flag("discover")
    assert not settle(config={"discover": False}).flag("discover")


def test_a_list_is_separated_by_commas() -> None:
    assert settle("--scopes= a, b,,c ").items("scopes") == ("a", "b", "c")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--scopes=,"], "flag --scopes is an empty list"),
        (["--allow-server=,"], "flag --allow-server is an empty list"),
        (["--mode=loud"], "flag --mode must be one of off, warn"),
        (["--discover=maybe"], "flag --discover must be true or false"),
        (["--discover=ｔｒｕｅ"], "flag --discover must be true or false"),
        (["--secret-name=a\nb"], "flag --secret-name holds a control character or is not UTF-8"),
        (["--secret-name=\udcff"], "flag --secret-name holds a control character or is not UTF-8"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_source(arguments: Sequence[str], why: str) -> None:
    error = refused(*arguments)
    assert [error.code, error.exit_status] == ["setting-invalid", 2]
    assert error.message.startswith(why)


def test_a_variable_that_does_not_fit_is_named() -> None:
    assert refused(variables={"ROLE": "\udcff"}).message.startswith("variable ROLE holds a control character")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("secretName", 5, "config key secretName must be a string, is a number"),
        ("secretName", True, "config key secretName must be a string, is a boolean"),
        ("secretName", ["x"], "config key secretName must be a string, is an array"),
        ("name", {"a": 1}, "config key name must be a string, is an object"),
        ("scopes", ["a"], "config key scopes must be a string, is an array"),
        ("discover", "true", "config key discover must be a boolean, is a string"),
        ("discover", 1, "config key discover must be a boolean, is a number"),
        ("wait", True, "config key wait must be a number of seconds, is a boolean"),
        ("wait", [], "config key wait must be a number of seconds, is an array"),
        ("endpoint", 5, "config key endpoint must be a string, is a number"),
    ],
)
def test_a_known_key_of_the_wrong_type_is_an_error_that_names_key_and_type(key: str, value: object, why: str) -> None:
    error = refused(config={key: value})
    assert [error.code, error.exit_status, error.message] == ["config-invalid", 2, why]


# --- trust ---


@pytest.mark.parametrize("config", [True, False])
@pytest.mark.parametrize(
    ("flag", "key", "value"),
    [
        ("endpoint", "endpoint", "https://evil"),
        ("role-arn", "roleArn", "arn:evil"),
        ("mode", "mode", "warn"),
        ("timeout", "timeout", "60"),
        ("output", "output", "token"),
        ("log-level", "logLevel", "debug"),
        ("api-version", "apiVersion", "v1"),
    ],
)
def test_what_a_profile_may_not_set_is_refused_with_the_flag_the_admin_needs(
    flag: str, key: str, value: str, config: bool
) -> None:
    error = refused(config={key: value}) if config else refused("--profile-args", f"--{flag}={value}")
    assert [error.code, error.exit_status] == ["profile-refused", 1]
    assert f"a profile may not set {flag}" in error.message
    assert f"the admin can set --{flag}" in error.hint
    assert value not in error.message


def test_the_same_value_as_the_admins_own_is_fine_a_different_one_is_refused() -> None:
    own = {"EXECCRED_ENDPOINT": "https://own"}
    assert settle(variables=own, config={"endpoint": "https://own"}).source("endpoint") == "variable EXECCRED_ENDPOINT"
    assert refused(variables=own, config={"endpoint": "https://other"}).code == "profile-refused"
    assert settle("--timeout=30s", "--profile-args", "--timeout=30").seconds("timeout") == 30.0


def test_a_guard_flag_lets_a_profile_set_what_it_names() -> None:
    assert "--allow-identity" in refused(config={"roleArn": "a"}).hint
    settings = settle("--allow-identity", config={"roleArn": "a"})
    assert [settings.text("role-arn"), settings.from_profile("role-arn")] == ["a", True]
    assert refused("--allow-identity=false", config={"roleArn": "a"}).code == "profile-refused"


def test_even_with_the_guard_open_the_admins_value_wins() -> None:
    assert settle("--allow-identity", "--role-arn=own", config={"roleArn": "theirs"}).text("role-arn") == "own"


@pytest.mark.parametrize(("allowed", "asked", "fine"), [("a,b", "b", True), ("*", "x", True), ("a,b", "c", False)])
def test_a_guard_with_values_allows_those(allowed: str, asked: str, fine: bool) -> None:
    arguments = ("--namespace=own", f"--allow-namespace={allowed}")
    if fine:
        assert settle(*arguments, config={"namespace": asked}).text("namespace") == "own"
    else:
        assert refused(*arguments, config={"namespace": asked}).code == "profile-refused"


def test_a_value_that_may_be_the_consumers_own_is_left_for_the_plugin_to_check() -> None:
    assert settle(config={"namespace": "x"}).from_profile("namespace")


@pytest.mark.parametrize("key", ["allowIdentity", "allowServer", "allowNamespace"])
def test_no_profile_can_open_a_guard_by_its_config(key: str) -> None:
    value: object = True if key == "allowIdentity" else "*"
    assert refused(config={key: value}).code == "profile-refused"


@pytest.mark.parametrize(
    "argument",
    ["--allow-identity", "-allow-identity", "--allow-server=*", "-allow-server=*", "--help", "-h", "--version"],
)
def test_no_guard_is_heard_behind_the_seal_not_even_with_the_admins_value(argument: str) -> None:
    error = refused("--allow-server=*", "--profile-args", argument)
    assert [error.code, error.exit_status] == ["profile-refused", 1]


@pytest.mark.parametrize("word", ["install", "get-token", "-", "--", ""])
def test_no_word_is_heard_behind_the_seal(word: str) -> None:
    assert refused("--profile-args", word).code == "profile-refused"


def test_no_environment_can_open_a_guard() -> None:
    for setting in TABLE:
        assert not (setting.guard and setting.env)
    variables = {"EXECCRED_ALLOW_IDENTITY": "true", "EXECCRED_ALLOW_SERVER": "*", "EXECCRED_PROFILE_ARGS": "1"}
    assert refused(variables=variables, config={"roleArn": "a"}).code == "profile-refused"


def test_the_seal_cannot_be_broken_by_another_seal() -> None:
    assert refused("--profile-args", "--profile-args", "--endpoint=x").code == "profile-refused"
    assert refused("--profile-args", "-profile-args", "--allow-identity").code == "profile-refused"
