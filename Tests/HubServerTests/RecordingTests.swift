import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

/// Replays the service's recordings of installations and sends over a socket.
///
/// A scenario of installations begins by cleaning up through the registrations API what another one
/// has left. Not compared are the replies' `Server`, `Date` and transfer coding.
@Suite("Recordings of the real service", .timeLimit(.minutes(5)))
struct RecordingTests {
  typealias Scenario = RecordingReplay.Scenario
  typealias Request = RecordingReplay.Request

  static let token = "62BCD3484834B7E2DC56733AC5509259230CC1BA82BA1AE7D06E91908A05A8FA"

  /// A PUT whose body is completed by the id in the recorded path.
  private static func put(_ members: String = "") -> Request {
    Request(
      method: "PUT", headers: ["Content-Type": "application/json"],
      body: #"{"installationId":"ID","pushChannel":"\#(token)","platform":"apns"\#(members)}"#)
  }

  private static func patch(_ operation: String) -> Request {
    Request(
      method: "PATCH", headers: ["Content-Type": "application/json"], body: "[\(operation)]")
  }

  private static func send(
    _ format: String, tags: String? = nil, body: String, headers: [String: String] = [:]
  ) -> Request {
    var all = headers
    all["ServiceBusNotification-Format"] = format
    all["ServiceBusNotification-Tags"] = tags
    return Request(method: "POST", headers: all, body: body)
  }

  private static let get = Request(method: "GET")
  private static let apple = #"{"aps":{"alert":"alert!"}}"#
  private static let toast =
    #"<?xml version="1.0" encoding="utf-16"?><toast><visual><binding template="ToastText01">"#
    + #"<text id="1">hi</text></binding></visual></toast>"#
  private static let someone = "{d2c2b1ee-3b5c-4a6f-8d1e-6c8f0a9b7e55}"

  static let installations: [Scenario] = [
    Scenario(
      file: "CreateOrUpdateInstallationAsync_CreateInstallationWithExpiryInTemplate_"
        + "GetCreatedInstallationWithExpiryInTemplateBack",
      requests: [
        put(
          #","tags":["tag1"],"pushVariables":{"var1":"value1"},"templates":{"Template Name":"#
            + #"{"body":"{\"aps\":{\"alert\":\"alert!\"}}","#
            + #""expiry":"2018-11-07T16:18:32.6641371-08:00"}}"#), get,
      ]),
    Scenario(
      file: "CreateOrUpdateInstallationAsync_CreateInstallationWithUserId_"
        + "GetCreatedInstallationWithUserIdBack",
      requests: [put(#","userId":"d798d460-79d2-449a-b2fc-fa5bf4090f38""#), get]),
    Scenario(
      file: "PatchInstallationAsync_CreateInstallationWithoutTagsAndAddTagThroughPatch_"
        + "GetInstallationWithAddedTagBack",
      requests: [put(), patch(#"{"op":"add","path":"/tags","value":"tag1"}"#), get]),
    Scenario(
      file: "PatchInstallationAsync_CreateInstallationWithoutUserIdAndAddUserIdThroughPatch_"
        + "GetInstallationWithAddedUserIdBack",
      requests: [
        put(),
        patch(
          #"{"op":"add","path":"/userId","value":"ab25de9f-fcf7-49db-a527-28f797b148b6"}"#), get,
      ]),
    Scenario(
      file: "PatchInstallationAsync_CreateInstallationWithUserIdAndRemoveUserIdThroughPatch_"
        + "GetInstallationWithoutUserIdBack",
      requests: [
        put(#","userId":"22ce92d1-f035-470c-a5d4-5b10e2fb25c1""#),
        patch(#"{"op":"remove","path":"/userId","value":null}"#), get,
      ]),
    Scenario(
      file: "DeleteInstallationAsync_CreateAndDeleteInstallation_InstallationIsDeleted",
      requests: [put(), get, Request(method: "DELETE"), get]),
  ]

  static let sends: [Scenario] = [
    Scenario(
      file: "SendNotificationAsync_SendAppleNativeNotification_GetSuccessfulResultBack",
      requests: [
        send(
          "apple", body: apple,
          headers: [
            "ServiceBusNotification-Apns-Expiry": "01/06/2030 10:00:00", "X-Apns-Priority": "5",
          ])
      ]),
    Scenario(
      file: "SendNotificationAsync_SendAppleNativeNotification_ByInstallationId_"
        + "GetSuccessfulResultBack",
      requests: [send("apple", tags: "$InstallationId:\(someone)", body: apple)]),
    Scenario(
      file: "SendNotificationAsync_SendBaiduNativeNotification_GetSuccessfulResultBack",
      requests: [
        send(
          "baidu", body: #"{"title":"Title","description":"Description"}"#,
          headers: ["Content-Type": "application/x-www-form-urlencoded"])
      ]),
    Scenario(
      file: "SendNotificationAsync_SendGcmNativeNotification_ByUserId_GetSuccessfulResultBack",
      requests: [
        send("gcm", tags: "$UserId:\(someone)", body: #"{"data":{"message":"Message"}}"#)
      ]),
    Scenario(
      file: "SendNotificationAsync_SendWindowsNativeNotification_GetSuccessfulResultBack",
      requests: [send("windows", body: toast, headers: ["X-WNS-Type": "wns/toast"])]),
    Scenario(
      file: "SendNotificationAsync_SendWindowsNativeNotification_ByInstallationId_"
        + "GetSuccessfulResultBack",
      requests: [send("windows", tags: "$InstallationId:\(someone)", body: toast)]),
    Scenario(
      file: "SendNotificationAsync_SendWindowsNativeNotification_ByUserId_GetSuccessfulResultBack",
      requests: [send("windows", tags: "$UserId:\(someone)", body: toast)]),
    Scenario(
      file: "SendNotificationAsync_SendTemplateNotification_GetSuccessfulResultBack",
      requests: [send("template", tags: "someRandomTag1 && someRandomTag2", body: "{}")]),
    Scenario(
      file: "SendDirectNotificationAsync_SendDirectAppleNotification_GetSuccessfulResultBack",
      requests: [
        send("apple", body: apple, headers: ["ServiceBusNotification-DeviceHandle": token])
      ]),
    Scenario(
      file: "SendDirectNotificationAsync_SendDirectAppleBatchNotification_GetSuccessfulResultBack",
      requests: [
        send(
          "apple",
          body: "--b1\r\nContent-Type: application/json\r\n"
            + "Content-Disposition: inline; name=notification\r\n\r\n\(apple)\r\n--b1\r\n"
            + "Content-Type: application/json\r\nContent-Disposition: inline; name=devices\r\n"
            + "\r\n[\"\(token)\"]\r\n--b1--\r\n",
          headers: ["Content-Type": "multipart/mixed; boundary=\"b1\""])
      ]),
    Scenario(
      file: "ScheduleNotificationAsync_SendAppleNativeNotification_GetSuccessfulResultBack",
      requests: [
        send(
          "apple", body: apple,
          headers: ["ServiceBusNotification-ScheduleTime": "2030-01-05T10:00:01.0000000"])
      ]),
    Scenario(
      file: "SendDirectNotificationAsync_ListenOnlyConnectionString_ThrowsUnauthorizedException",
      requests: [
        Request(
          method: "POST",
          headers: [
            "ServiceBusNotification-Format": "gcm",
            "ServiceBusNotification-DeviceHandle": "amzn1.adm-registration.v2.123",
          ], body: #"{"data":{"message":"Message"}}"#, usesListenKey: true)
      ]),
  ]

  @Test("installations answer as recorded", arguments: TestedEngine.installed, installations)
  func installation(engine: TestedEngine, scenario: Scenario) async throws {
    try await withHub(hubs: ["sdk-sample-nh", "hub1"], on: engine) {
      try await RecordingReplay.run(scenario, on: $0)
    }
  }

  @Test("sends answer as recorded", arguments: TestedEngine.installed, sends)
  func send(engine: TestedEngine, scenario: Scenario) async throws {
    try await withHub(hubs: ["sdk-sample-nh", "hub1"], on: engine) {
      try await RecordingReplay.run(scenario, on: $0)
    }
  }
}
