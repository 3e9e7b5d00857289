"""One dashboard: from the API through tick and queues to the executor, and the table under all. It never alarms."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import Alarms, Watched, audit_findings, throttles
from infra.function import METRICS_NAMESPACE, service_name
from infra.options import Options
from shared.model.job import PRIORITIES

MINUTE = Duration.minutes(1)
_WIDTH = 8  # of 24


class Dashboard(Construct):
    """Rows: alarms, what comes in, what is due, what runs, what it costs."""

    def __init__(
        self, scope: Construct, construct_id: str, *, options: Options, watched: Watched, alarms: Alarms
    ) -> None:
        super().__init__(scope, construct_id)
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            default_interval=Duration.hours(3),
            widgets=[
                [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms.all), width=24)],
                _api_row(watched),
                [_calls("Ticks", watched.tick), _duration("Length of a tick", watched.tick), _lateness(options)],
                [_queue(f"Queue of {priority} jobs", watched.jobs[priority]) for priority in PRIORITIES],
                _executor_row(watched),
                _store_row(watched),
                _audit_row(watched, options),
            ],
        )


def _graph(title: str, *left: cloudwatch.IMetric, right: list[cloudwatch.IMetric] | None = None) -> cloudwatch.IWidget:
    return cloudwatch.GraphWidget(title=title, left=list(left), right=right or [], width=_WIDTH, height=6)


def _calls(title: str, function: lambda_.Function) -> cloudwatch.IWidget:
    return _graph(
        title,
        function.metric_invocations(period=MINUTE),
        function.metric_errors(period=MINUTE),
        function.metric_throttles(period=MINUTE),
    )


def _duration(title: str, function: lambda_.Function) -> cloudwatch.IWidget:
    return _graph(
        title,
        function.metric_duration(period=MINUTE, statistic="p50", label="p50"),
        function.metric_duration(period=MINUTE, statistic="Maximum", label="longest"),
    )


def _api_row(watched: Watched) -> list[cloudwatch.IWidget]:
    api = watched.api
    return [
        _graph(
            "API requests",
            api.metric_count(period=MINUTE),
            api.metric_client_error(period=MINUTE),
            api.metric_server_error(period=MINUTE),
        ),
        _graph(
            "API latency",
            api.metric_latency(period=MINUTE, statistic="p50", label="p50"),
            api.metric_latency(period=MINUTE, statistic="p99", label="p99"),
        ),
        _calls("Submit function", watched.submit),
    ]


def _queue(title: str, jobs: sqs.Queue) -> cloudwatch.IWidget:
    return _graph(
        title,
        jobs.metric_approximate_number_of_messages_delayed(period=MINUTE, label="waiting for their second"),
        jobs.metric_approximate_number_of_messages_visible(period=MINUTE, label="waiting for an executor"),
        jobs.metric_approximate_number_of_messages_not_visible(period=MINUTE, label="running or backing off"),
        right=[jobs.metric_approximate_age_of_oldest_message(period=MINUTE, label="age of the oldest, s")],
    )


def _executor_row(watched: Watched) -> list[cloudwatch.IWidget]:
    concurrency = watched.execute.metric("ConcurrentExecutions", period=MINUTE, statistic="Maximum")
    return [
        _calls("Executor", watched.execute),
        _graph("Executors at once", concurrency),
        _graph(
            "Dead letters",
            watched.dead_letters.metric_approximate_number_of_messages_visible(period=MINUTE, statistic="Maximum"),
        ),
    ]


def _lateness(options: Options) -> cloudwatch.IWidget:
    def late(statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=METRICS_NAMESPACE,
            metric_name="Lateness",
            dimensions_map={"service": service_name(options, "execute")},
            period=MINUTE,
            statistic=statistic,
            label=statistic,
        )

    return _graph("Lateness of starts, ms", late("p50"), late("p99"), late("Maximum"))


def _store_row(watched: Watched) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Table units",
            watched.table.metric_consumed_write_capacity_units(period=MINUTE, statistic="Sum"),
            watched.table.metric_consumed_read_capacity_units(period=MINUTE, statistic="Sum"),
        ),
        _graph("Throttled requests", *throttles(watched.table).values()),
    ]


def _audit_row(watched: Watched, options: Options) -> list[cloudwatch.IWidget]:
    return [_graph("Audit findings", audit_findings(options)), _calls("Audits", watched.audit)]
