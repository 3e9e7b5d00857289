"""The one table and its two sparse indexes: due times, lists. It never decides a name: shared/store/keys.py does."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra.options import Options
from shared.store import keys


class JobTable(Construct):
    """On demand, with TTL and point-in-time recovery; kept and protected unless removal_policy is destroy."""

    def __init__(self, scope: Construct, construct_id: str, *, options: Options) -> None:
        super().__init__(scope, construct_id)
        keep = options.removal_policy == "retain"
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=_text(keys.PK),
            sort_key=_text(keys.SK),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=keys.TTL_ATTRIBUTE,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=keep,
            removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
        )
        self.table.add_global_secondary_index(
            index_name=keys.DUE_INDEX,
            partition_key=_text(keys.DUE_KEY),
            sort_key=_text(keys.DUE_AT),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=list(keys.DUE_PROJECTION),
        )
        self.table.add_global_secondary_index(
            index_name=keys.LIST_INDEX,
            partition_key=_text(keys.LIST_KEY),
            sort_key=_text(keys.LIST_AT),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        self.arn = self.table.table_arn
        self.index_arn = f"{self.table.table_arn}/index/{keys.DUE_INDEX}"
        self.lists_arn = f"{self.table.table_arn}/index/{keys.LIST_INDEX}"


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
