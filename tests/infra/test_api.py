"""The HTTP API in front of the submit function."""

import json
import re

from tests.infra.conftest import Synthesise
from tests.infra.template import Template, written


def test_every_call_under_v1_is_signed_and_goes_to_submit(template: Template) -> None:
    route = template.only("AWS::ApiGatewayV2::Route")
    assert route["RouteKey"] == "ANY /v1/{proxy+}"
    assert route["AuthorizationType"] == "AWS_IAM"
    integration = template.only("AWS::ApiGatewayV2::Integration")
    logical_id, _ = template.function("submit")
    assert integration["IntegrationUri"] == {"Fn::GetAtt": [logical_id, "Arn"]}
    assert integration["PayloadFormatVersion"] == "2.0"


def test_only_this_api_may_call_the_function(template: Template) -> None:
    permission = template.only("AWS::Lambda::Permission")
    assert permission["Principal"] == "apigateway.amazonaws.com"
    (api,) = template.all("AWS::ApiGatewayV2::Api")
    assert f":${{{api}}}/*/*/v1/" in written(permission["SourceArn"])


def test_without_auth_is_a_choice_that_must_be_made(synthesise: Synthesise) -> None:
    assert synthesise(auth="none").only("AWS::ApiGatewayV2::Route")["AuthorizationType"] == "NONE"


def test_it_is_throttled(template: Template, synthesise: Synthesise) -> None:
    def limits(of: Template) -> tuple[int, int]:
        settings = of.only("AWS::ApiGatewayV2::Stage")["DefaultRouteSettings"]
        return settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"]

    assert limits(template) == (500, 1000)
    assert limits(synthesise(api_rate=7, api_burst=9)) == (7, 9)


def test_each_request_is_logged_as_one_json_object(template: Template) -> None:
    stage = template.only("AWS::ApiGatewayV2::Stage")
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)
    settings = stage["AccessLogSettings"]
    group = settings["DestinationArn"]["Fn::GetAtt"][0]
    assert template.resources[group]["Type"] == "AWS::Logs::LogGroup"
    line = json.loads(re.sub(r"\$context\.[\w.]+", "x", settings["Format"]))
    assert {"request_id", "caller", "method", "path", "status", "latency_ms"} <= set(line)


def test_the_outputs_name_what_clients_and_scripts_need(template: Template) -> None:
    assert set(template.outputs) == {
        *("ApiUrl", "ApiId", "TableName", "QueueUrl", "HighQueueUrl", "LowQueueUrl", "DeadLetterQueueUrl", "TopicArn"),
        *("SubmitFunctionName", "TickFunctionName", "ExecuteFunctionName", "AuditFunctionName"),
    }
    assert written(template.outputs["ApiUrl"]["Value"]).startswith("https://")
