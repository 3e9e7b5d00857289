"""The job queues, one a priority, and their dead-letter queue. They lose no message in silence: redrive in 14 days."""

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.options import Options
from shared.model.job import Priority

# AWS advises six times the function's timeout, so that a throttled batch is not seen twice while it waits.
VISIBILITY_FACTOR = 6
# Attempts are counted in the store; this is only the net for an executor that cannot even start.
MAX_RECEIVES = 1000  # AWS's limit: put-backs count too, and max_attempts may be 100; at half of it one is sent anew
RETENTION = Duration.days(14)
# The construct of each priority's queue, and so its name in the stack.
NAMES: dict[Priority, str] = {"normal": "Jobs", "high": "HighJobs", "low": "LowJobs"}


class Queues(Construct):
    """`jobs` carry claimed occurrences to the executor; `dead_letters` keeps what needs a person, of all of them."""

    def __init__(self, scope: Construct, construct_id: str, *, options: Options) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=RETENTION,
        )
        self.jobs = {
            priority: sqs.Queue(
                self,
                name,
                encryption=sqs.QueueEncryption.SQS_MANAGED,
                enforce_ssl=True,
                retention_period=RETENTION,
                visibility_timeout=Duration.seconds(VISIBILITY_FACTOR * options.executor_timeout_s),
                dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=MAX_RECEIVES),
            )
            for priority, name in NAMES.items()
        }
