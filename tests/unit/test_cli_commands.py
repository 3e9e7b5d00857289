"""The command line against a scripted API: what it sends, what it prints, how it exits."""

import io
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from duetime.cli import main
from tests.support.scripted_server import Answer, Asked, ScriptedServer, scripted_server

JOB = {
    "job_id": "j1",
    "name": None,
    "status": "scheduled",
    "target": {"kind": "python", "handler": "demo.echo"},
    "payload": None,
    "run_at": "2099-01-01T00:00:00Z",
    "cron": None,
    "every": None,
    "timezone": "UTC",
    "next_run_at": "2099-01-01T00:00:00Z",
    "created_at": "2026-11-29T12:00:00Z",
    "retry": {"max_attempts": 3, "base_s": 10, "factor": 2, "max_s": 3600},
    "timeout_s": 60,
    "runs": [],
}
PROBLEM = {
    "type": "urn:duetime:problem:invalid-request",
    "title": "The request is not valid",
    "status": 400,
    "detail": "cron: 'x' is no cron expression",
    "errors": [{"field": "cron", "message": "'x' is no cron expression"}],
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process; answers exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["duetime", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return call


def api(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> Any:
    """A scripted API at DUETIME_URL: the answers in turn, the last one for ever."""
    left = list(answers)

    def script(asked: Asked) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    context = scripted_server(script)

    class Here:
        def __enter__(self) -> ScriptedServer:
            server = context.__enter__()
            monkeypatch.setenv("DUETIME_URL", server.url)
            return server

        def __exit__(self, *failure: Any) -> None:
            context.__exit__(*failure)

    return Here()


def test_submit_sends_the_payload_to_the_letter_and_only_what_was_given(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = '{"b": 30.40, "a": 1e400, "ä": "\\u00e4"}'
    with api(monkeypatch, Answer.of(JOB, 201)) as server:
        code, _, _ = run("submit", "--handler", "demo.echo", "--cron", "@daily", "--payload", payload)
    assert code == 0
    (asked,) = server.asked
    assert (asked.method, asked.target) == ("POST", "/v1/jobs")
    assert asked.headers["Content-Type"] == "application/json"
    assert payload.encode() in asked.body
    assert json.loads(asked.body).keys() == {"target", "cron", "payload"}


def test_submit_sends_every_option(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--at", "2099-01-01T09:00", "--timezone", "Europe/Berlin", "--job-id", "j1", "--name", "n"]
    options += ["--max-attempts", "5", "--timeout", "2m", "--idempotency-key", "k", "--group", "g", "--overlap", "skip"]
    options += ["--priority", "high", "--tag", "team:blue", "--tag", "url:http://x", "--tag", "bare"]
    options += ["--fields", '{"deadline_s": 60, "dst_gap": "skip"}']
    with api(monkeypatch, Answer.of(JOB, 201)) as server:
        run("submit", "--target", '{"kind": "python", "handler": "h"}', *options)
    (asked,) = server.asked
    assert json.loads(asked.body) == {
        "target": {"kind": "python", "handler": "h"},
        "run_at": "2099-01-01T09:00",
        "timezone": "Europe/Berlin",
        "job_id": "j1",
        "name": "n",
        "group": "g",
        "overlap": "skip",
        "retry": {"max_attempts": 5},
        "timeout_s": 120,
        "priority": "high",
        "tags": {"team": "blue", "url": "http://x", "bare": ""},
        "deadline_s": 60,
        "dst_gap": "skip",
    }
    assert asked.headers["Idempotency-Key"] == "k"


@pytest.mark.parametrize(
    ("options", "about"),
    [
        (["--fields", '{"retry": {"base_s": 1}}', "--max-attempts", "5"], "retry is given twice"),
        (["--fields", '{"payload": 1}'], "payload is given twice, or has its own place"),
        (["--fields", "[1]"], "--fields must be a JSON object"),
        (["--fields", "{"], "--fields must be JSON"),
        (["--tag", "a:1", "--tag", "a:2"], "--tag: a job has a tag of one name once"),
    ],
)
def test_submit_refuses_what_is_said_twice(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: list[str], about: str
) -> None:
    with api(monkeypatch, Answer.of(JOB, 201)) as server:
        code, _, err = run("submit", "--handler", "h", "--at", "now", *options)
    assert (code, server.asked) == (2, [])
    assert about in err


@pytest.mark.parametrize(
    ("options", "asked_for"),
    [([], None), (["--max-running", "5"], b'{"max_running": 5}'), (["--no-limit"], b'{"max_running": null}')],
)
def test_group_shows_and_limits(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: list[str], asked_for: bytes | None
) -> None:
    limited = Answer.of({"group": "t", "max_running": 5, "running": 2})
    with api(monkeypatch, limited, Answer.of({"group": "t", "max_running": None, "running": 0})) as server:
        assert run("group", "t", *options) == (0, "group t  at most 5 at a time, 2 going on\n", "")
        assert run("group", "t", *options) == (0, "group t  no limit\n", "")
    assert [(one.method, one.target, one.body) for one in server.asked] == [
        ("PUT" if asked_for else "GET", "/v1/groups/t", asked_for or b"")
    ] * 2


@pytest.mark.parametrize("arguments", [["t", "--max-running", "5", "--no-limit"], ["t", "--max-running", "many"], [""]])
def test_group_is_not_asked_for_what_cannot_be(run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    with api(monkeypatch, Answer.of({})) as server:
        assert run("group", *arguments)[0] == 2
    assert server.asked == []


def test_a_job_that_may_not_overlap_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with api(monkeypatch, Answer.of(JOB | {"overlap": "queue", "overlap_skipped": 3})):
        assert "queue, 3 skipped" in run("show", "j1")[1]


def test_submit_in_a_while_sends_a_moment_with_its_offset(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with api(monkeypatch, Answer.of(JOB, 201)) as server:
        run("submit", "--handler", "h", "--in", "10s")
    assert json.loads(server.asked[0].body)["run_at"].endswith("+00:00")


def test_json_is_the_apis_document_to_the_letter(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"job_id":"j1","status":"scheduled",  "payload":30.40,"runs":[]}'
    with api(monkeypatch, Answer(200, text)):
        assert run("show", "j1", "--json") == (0, text.decode() + "\n", "")


def test_people_get_a_table_with_the_numbers_as_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(JOB | {"payload": {"a": 0}}).replace('{"a": 0}', '{"a": 30.40}')
    with api(monkeypatch, Answer(200, text.encode())):
        code, out, _ = run("show", "j1")
    assert code == 0
    assert "30.40" in out
    assert "[" not in out.replace("[]", "")  # no markup left over


def test_a_refusal_is_exit_code_1_with_the_field_on_the_standard_error(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with api(monkeypatch, Answer.of(PROBLEM, 400)):
        code, out, err = run("submit", "--handler", "h", "--cron", "x")
        assert (code, out) == (1, "")
        assert err == "duetime: cron: 'x' is no cron expression\n"
        code, out, _ = run("submit", "--handler", "h", "--cron", "x", "--json")
        assert (code, json.loads(out)) == (1, PROBLEM)


@pytest.mark.parametrize(
    "arguments",
    [
        ["submit", "--handler", "h"],
        ["submit", "--in", "5s"],
        ["submit", "--handler", "h", "--in", "5s", "--cron", "x"],
        ["submit", "--handler", "h", "--in", "soon"],
        ["submit", "--handler", "h", "--in", "5s", "--payload", "{"],
        ["preview"],
        ["show"],
        ["nonsense"],
        ["submit", "--max-attempts", "many"],
    ],
)
def test_a_bad_command_line_is_exit_code_2_and_asks_nobody(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    with api(monkeypatch, Answer.of(JOB)) as server:
        code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert server.asked == []


def test_nobody_there_is_exit_code_3(run: Run) -> None:
    code, out, err = run("show", "j1", "--url", "http://127.0.0.1:1")
    assert (code, out) == (3, "")
    assert err.startswith("duetime: cannot reach http://127.0.0.1:1: ")


@pytest.mark.parametrize("answer", [Answer(502, b"<html>"), Answer.of({"detail": "starting"}, 503), Answer(200, b"[]")])
def test_an_answer_that_is_not_the_apis_is_exit_code_3(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    with api(monkeypatch, answer):
        code, _, err = run("show", "j1")
    assert code == 3
    assert "cannot reach the API" in err


@pytest.mark.parametrize(("status", "code"), [("succeeded", 0), ("dead_lettered", 4), ("cancelled", 4), ("skipped", 4)])
def test_watch_follows_to_the_end_and_tells_how_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:
    answers = [Answer.of(JOB, 201), Answer.of(JOB), Answer.of(JOB | {"status": "enqueued"})]
    last = JOB | {"status": status}
    with api(monkeypatch, *answers, Answer.of(last)):
        ended, out, _ = run("submit", "--handler", "h", "--in", "1s", "--watch")
        assert ended == code
        assert out.count("enqueued") == 1
        ended, out, _ = run("show", "j1", "--watch", "--json")
        assert (ended, json.loads(out)) == (code, last)


def test_cancel_runs_and_preview_call_their_paths(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"runs": [], "cursor": "next page"}
    with api(monkeypatch, Answer.of(JOB | {"running": ["x"]}), Answer.of(page), Answer.of({"times": []})) as server:
        _, out, _ = run("cancel", "a/b c:1")
        assert "already going on" in out
        _, _, err = run("runs", "j1", "--cursor", "a&b")
        assert "--cursor 'next page'" in err
        run("preview", "--every", "5m", "--count", "2")
    assert [(asked.method, asked.target) for asked in server.asked] == [
        ("POST", "/v1/jobs/a%2Fb%20c:1:cancel"),
        ("GET", "/v1/jobs/j1/runs?cursor=a%26b"),
        ("POST", "/v1/preview"),
    ]
    assert json.loads(server.asked[-1].body) == {"every": "5m", "count": 2}


def test_changes_of_a_job_call_their_paths_and_tell_how_it_stands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JOB | {"version": 7, "next_run_at": "2027-01-01T00:00:00Z"}
    dead = "2026-11-30T12:00:00Z"
    answers = [job, job, job, {"scheduled_for": dead}, {"scheduled_for": dead}]
    pages = [{"redriven": [dead], "more": True}, {"redriven": [], "more": False}]
    with api(monkeypatch, *(Answer.of(one) for one in answers + pages)) as server:
        for command in (["pause", "j1"], ["resume", "j1"], ["update", "j1", '{"name": "b"}', "--if-version", "6"]):
            code, out, _ = run(*command)
            assert (code, "version 7" in out, "2027-01-01" in out) == (0, True, True)
        assert "triggered j1" in run("trigger", "j1")[1]
        assert dead in run("redrive", "j1", "--run", dead)[1]
        assert run("redrive", "j1")[1].count("redriven j1") == 1
    assert [(asked.method, asked.target) for asked in server.asked] == [
        ("POST", "/v1/jobs/j1:pause"),
        ("POST", "/v1/jobs/j1:resume"),
        ("PATCH", "/v1/jobs/j1"),
        ("POST", "/v1/jobs/j1:trigger"),
        ("POST", f"/v1/jobs/j1/runs/{dead}:redrive"),
        ("POST", "/v1/jobs/j1:redrive"),
        ("POST", "/v1/jobs/j1:redrive"),
    ]
    assert json.loads(server.asked[2].body) == {"name": "b"}


def test_signing_is_for_the_region_and_with_the_session_of_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": "s", "SESSION_TOKEN": "token"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with api(monkeypatch, Answer.of(JOB)) as server:
        assert run("show", "j1", "--sign")[0] == 0
        assert run("show", "j1")[0] == 0
    signed, plain = (asked.headers for asked in server.asked)
    assert signed["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/execute-api/aws4_request" in signed["Authorization"]
    assert signed["X-Amz-Security-Token"] == "token"
    assert plain["Authorization"] is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["show", "\udcff"], "an argument"),
        (["submit", "--handler", "\udcff", "--in", "1s"], "--handler"),
        (["submit", "--handler", "h", "--in", "1s", "--payload", '"\udcff"'], "--payload"),
        (["submit", "--handler", "h", "--in", "1s", "--name=\udcff"], "--name"),
    ],
)
def test_bytes_that_are_no_utf8_are_refused_by_the_options_name(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], named: str
) -> None:
    with api(monkeypatch, Answer.of(JOB)) as server:
        code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"duetime: {named} must be UTF-8 text, not ")
    assert "\\xff" in err
    assert server.asked == []


def test_a_payload_from_the_standard_input_is_read_as_utf8(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = ["submit", "--handler", "h", "--in", "1s", "--payload", "-"]
    with api(monkeypatch, Answer.of(JOB, 201)) as server:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO('{"größe": 1}'.encode()), encoding="ascii"))
        assert run(*submit)[0] == 0
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'"\xff"')))
        code, _, err = run(*submit)
    assert code == 2
    assert err.startswith("duetime: --payload: the standard input is not UTF-8: ")
    (asked,) = server.asked
    assert '{"größe": 1}'.encode() in asked.body


@pytest.mark.parametrize("url", ["http://[", "nonsense", "ftp://127.0.0.1", "http://127.0.0.1:99999", ""])
def test_an_address_that_is_none_is_exit_code_3(run: Run, url: str) -> None:
    code, out, err = run("show", "j1", "--url", url)
    assert (code, out) == (3, "")
    assert err.startswith(f"duetime: {url!r} is not the URL of an API, such as http")


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_the_address_is_taken_with_and_without_its_v1_before_the_command_and_after(run: Run, end: str) -> None:
    with scripted_server(lambda asked: Answer.of(JOB)) as server:
        assert run("--url", server.url + end, "show", "j1")[0] == 0
        assert run("show", "j1", "--url", server.url + end)[0] == 0
        assert run("--url", "http://127.0.0.1:1", "show", "j1", "--url", server.url + end)[0] == 0
    assert [asked.target for asked in server.asked] == ["/v1/jobs/j1"] * 3


def test_the_address_before_the_command_goes_before_the_environments(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUETIME_URL", "http://127.0.0.1:1")
    with scripted_server(lambda asked: Answer.of(JOB)) as server:
        assert run("--url", server.url, "show", "j1")[0] == 0


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"status": "cancelled"}, 0),
        ({"status": "running", "running": ["2026-11-29T12:00:05Z"]}, 0),
        ({"status": "succeeded", "running": []}, 1),
        ({"status": "dead_lettered", "running": []}, 1),
    ],
)
def test_cancel_tells_how_it_stands_and_is_well_only_when_cancelled(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], code: int
) -> None:
    with api(monkeypatch, Answer.of(JOB | answer)):
        ended, out, err = run("cancel", "j1")
        assert (ended, "cancelled j1" in out) == (code, code == 0)
        assert (f"its status is {answer['status']}" in err) == (code == 1)
        ended, out, _ = run("cancel", "j1", "--json")
        assert (ended, json.loads(out)["status"]) == (code, answer["status"])


def test_what_the_api_says_cannot_act_on_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with api(monkeypatch, Answer.of(PROBLEM | {"detail": "no \x1b[2J\u202e\n"}, 400)):
        assert run("show", "j1")[2] == "duetime: no \\x1b[2J\\u202e\\n\n"


def test_preview_can_begin_at_another_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with api(monkeypatch, Answer.of({"times": []})) as server:
        run("preview", "--cron", "@daily", "--after", "2027-01-01T00:00:00Z")
    assert json.loads(server.asked[0].body) == {"cron": "@daily", "after": "2027-01-01T00:00:00Z"}


def test_version_and_an_empty_id(run: Run) -> None:
    code, out, _ = run("--version")
    assert (code, out) == (0, f"duetime {version('duetime')}\n")
    code, _, err = run("show", "")
    assert (code, err) == (2, "duetime: JOB must be a job's id, not an empty text\n")


def test_a_state_directory_that_cannot_be_made_is_told_in_a_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, out, err = run("up", "--state-dir", str(tmp_path / "file" / "state"))
    assert (code, out) == (1, "")
    assert err.startswith(f"duetime: the state directory {tmp_path / 'file' / 'state'} cannot be made: ")
    assert "Errno" not in err
    assert err.count("\n") == 1


def test_submit_after_other_jobs_needs_no_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    child = {**JOB, "depends_on": ["a", "b"]}
    with api(monkeypatch, Answer.of(child, 201)) as server:
        code, out, _ = run(
            "submit", "--handler", "h", "--depends-on", "a", "--depends-on", "b", "--on-parent-failure", "run"
        )
        assert run("submit", "--handler", "h", "--depends-on", "a", "--in", "5s")[0] == 0
        assert run("submit", "--handler", "h", "--depends-on", "a", "--in", "5s", "--at", "now")[0] == 2
        assert run("submit", "--handler", "h")[0] == 2
    assert code == 0
    sent = [json.loads(asked.body) for asked in server.asked]
    assert (sent[0]["depends_on"], sent[0]["on_parent_failure"]) == (["a", "b"], "run")
    assert sent[1].keys() == {"target", "run_at", "depends_on"}
    assert '["a", "b"]' in out


RESULTS = {
    "results": [
        {"index": 0, "status": 201, "job": JOB},
        {"index": 1, "status": 400, "problem": {**PROBLEM, "detail": "jobs[1].cron: \x1b[2J is no cron"}},
    ]
}


@pytest.mark.parametrize(
    "content",
    ['[{"a": 1.50}, {"b": "ä"}]', '{"a": 1.50}\n\n{"b": "ä"}\n', ' {"jobs": [{"a": 1.50}, {"b": "ä"}]}\n'],
)
def test_batch_sends_a_files_jobs_to_the_letter(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    (tmp_path / "jobs").write_text(content)
    with api(monkeypatch, Answer.of(RESULTS)) as server:
        code, out, err = run("batch", str(tmp_path / "jobs"), "--idempotency-key", "k")
    (asked,) = server.asked
    assert (asked.method, asked.target, asked.headers["Idempotency-Key"]) == ("POST", "/v1/jobs:batch", "k")
    assert json.loads(asked.body) == {"jobs": [{"a": 1.5}, {"b": "ä"}]}
    assert b"1.50" in asked.body
    assert code == 1
    assert [line.rstrip() for line in out.splitlines()] == [
        "scheduled      j1",
        "not taken      jobs[1]",
        "  jobs[1].cron: \\x1b[2J is no cron",
    ]
    assert "1 of the jobs was not taken" in err


def test_batch_for_scripts_and_of_one_job(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "one").write_text('{"a":\n1}')
    taken = {"results": [{"index": 0, "status": 201, "job": JOB}]}
    with api(monkeypatch, Answer.of(taken)) as server:
        code, out, err = run("batch", str(tmp_path / "one"), "--json")
    assert json.loads(server.asked[0].body) == {"jobs": [{"a": 1}]}
    assert (code, json.loads(out), err) == (0, taken, "")
    assert run("batch", str(tmp_path / "nothing"))[0] == 2
    (tmp_path / "none").write_text("{]")
    assert run("batch", str(tmp_path / "none"))[0] == 2
