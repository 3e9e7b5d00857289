"""The HTTP API in front of the submit function. It never lets an unsigned call in, unless `auth=none`."""

from collections.abc import Mapping

from aws_cdk import Aws
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from infra.function import DuetimeFunction, log_group
from infra.nag import acknowledge
from infra.options import Options
from infra.permissions import Arns

SUBMIT_TIMEOUT_S = 29  # API Gateway gives up at 30 s

_ACCESS_LOG = (
    '{"time":"$context.requestTime","request_id":"$context.requestId","source_ip":"$context.identity.sourceIp",'
    '"caller":"$context.identity.caller","method":"$context.httpMethod","path":"$context.path",'
    '"status":"$context.status","bytes":"$context.responseLength","latency_ms":"$context.responseLatency",'
    '"integration_latency_ms":"$context.integrationLatency","error":"$context.error.message",'
    '"integration_error":"$context.integrationErrorMessage"}'
)


class Api(Construct):
    """Every route under /v1 goes to the one submit function, which knows them."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        options: Options,
        code: lambda_.Code,
        environment: Mapping[str, str],
        resources: Arns,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = DuetimeFunction(
            self,
            "Submit",
            name="submit",
            code=code,
            options=options,
            environment=environment,
            resources=resources,
            memory_mb=options.submit_memory_mb,
            timeout_s=SUBMIT_TIMEOUT_S,
            reserved_concurrency=options.submit_reserved_concurrency,
        ).function
        self.api = apigateway.HttpApi(
            self,
            "HttpApi",
            api_name=options.stack_name,
            description="Duetime: submit jobs, watch their runs, cancel them",
            create_default_stage=False,
        )
        self.routes = self.api.add_routes(
            path="/v1/{proxy+}",
            methods=[apigateway.HttpMethod.ANY],
            integration=HttpLambdaIntegration("Submit", self.function),
            authorizer=HttpIamAuthorizer() if options.auth == "iam" else apigateway.HttpNoneAuthorizer(),
        )
        self._stage(options)
        self.url = f"https://{self.api.api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"
        if options.auth == "none":
            for route in self.routes:
                acknowledge(
                    route,
                    "AwsSolutions-APIG4",
                    "The deployment chose auth=none: callers are kept out before the API, or are all trusted.",
                )

    def _stage(self, options: Options) -> None:
        apigateway.CfnStage(
            self,
            "Stage",
            api_id=self.api.api_id,
            stage_name="$default",
            auto_deploy=True,
            access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
                destination_arn=log_group(self, "AccessLogs", options).log_group_arn, format=_ACCESS_LOG
            ),
            default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=options.api_rate,
                throttling_burst_limit=options.api_burst,
                detailed_metrics_enabled=False,
            ),
        )
