import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

/// Replays the service's recordings of registrations (docs/recordings.md), with the bodies that
/// .NET sends.
@Suite("Recordings of registrations", .timeLimit(.minutes(5)))
struct RegistrationRecordingTests {
  typealias Scenario = RecordingReplay.Scenario
  typealias Request = RecordingReplay.Request

  private static let template = "<TemplateName>Template Name</TemplateName>"
  private static let tag1 = "<Tags>tag1</Tags>"
  private static let both = tag1 + #"<PushVariables>{"var1":"value1"}</PushVariables>"#

  private static func description(_ type: String, _ members: String) -> String {
    #"<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">"#
      + #"<RegistrationDescription i:type="\#(type)RegistrationDescription" "#
      + #"xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" "#
      + #"xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><ETag i:nil="true"/>"#
      + #"<ExpirationTime i:nil="true"/><RegistrationId i:nil="true"/>\#(members)"#
      + "</RegistrationDescription></content></entry>"
  }

  private static func apple(_ members: String = "") -> String {
    description("Apple", members + "<DeviceToken>\(RecordingTests.token)</DeviceToken>")
  }

  private static func gcm(_ members: String = "") -> String {
    description(
      "Gcm", members + "<GcmRegistrationId>amzn1.adm-registration.v2.123</GcmRegistrationId>")
  }

  private static func gcmTemplate(_ members: String = "", name: String = template) -> String {
    description(
      "GcmTemplate",
      members + "<GcmRegistrationId>amzn1.adm-registration.v2.123</GcmRegistrationId>"
        + #"<BodyTemplate><![CDATA[{"data":{"message":"Message"}}]]></BodyTemplate>"# + name)
  }

  private static let type = ["Content-Type": "application/atom+xml;type=entry;charset=utf-8"]
  private static func post(_ body: String) -> Request {
    Request(method: "POST", headers: type, body: body)
  }
  private static func put(_ body: String, ifMatch: String? = nil) -> Request {
    var headers = type
    headers["If-Match"] = ifMatch
    return Request(method: "PUT", headers: headers, body: body)
  }
  private static let get = Request(method: "GET")
  private static let delete = Request(method: "DELETE", headers: ["If-Match": "*"])

  static let creations: [Scenario] = [
    ("CreateGcmNativeRegistration_GetGcmRegistrationType", gcm()),
    ("CreateFcmTemplateRegistration_GetFcmTemplateRegistrationType", gcmTemplate()),
    (
      "PassValidAdmNativeRegistration_GetCreatedRegistrationBack",
      description(
        "Adm", both + "<AdmRegistrationId>amzn1.adm-registration.v2.123</AdmRegistrationId>")
    ),
    ("PassValidAppleNativeRegistration_GetCreatedRegistrationBack", apple(both)),
    (
      "PassValidAppleTemplateRegistration_GetCreatedRegistrationBack",
      description(
        "AppleTemplate",
        both + "<DeviceToken>\(RecordingTests.token.lowercased())</DeviceToken>"
          + #"<BodyTemplate><![CDATA[{"aps":{"alert":"alert!"}}]]></BodyTemplate>"#
          + #"<Expiry i:nil="true"/>"# + template)
    ),
    (
      "PassValidBaiduTemplateRegistration_GetCreatedRegistrationBack",
      description(
        "BaiduTemplate",
        both + "<BaiduUserId>userId</BaiduUserId><BaiduChannelId>channelId</BaiduChannelId>"
          + #"<BodyTemplate>{"title":"Title","description":"Description"}</BodyTemplate>"#
          + template)
    ),
    ("PassValidGcmNativeRegistration_GetCreatedRegistrationBack", gcm(both)),
    ("PassValidGcmTemplateRegistration_GetCreatedRegistrationBack", gcmTemplate(both)),
    (
      "PassValidMpnsTemplateRegistration_GetCreatedRegistrationBack",
      description(
        "MpnsTemplate",
        both + "<ChannelUri>https://some.url/</ChannelUri>"
          + "<SecondaryTileName>Tile name</SecondaryTileName><BodyTemplate><![CDATA["
          + #"<wp:Notification xmlns:wp="WPNotification" Version="2.0"><wp:Tile Id="TileId" "#
          + #"Template="IconicTile"><wp:Title Action="Clear">Title</wp:Title></wp:Tile>"#
          + "</wp:Notification>]]></BodyTemplate><MpnsHeaders><MpnsHeader>"
          + "<Header>X-WindowsPhone-Target</Header><Value>token</Value></MpnsHeader><MpnsHeader>"
          + "<Header>X-NotificationClass</Header><Value>1</Value></MpnsHeader></MpnsHeaders>"
          + template)
    ),
    (
      "PassValidWindowsNativeRegistration_GetCreatedRegistrationBack",
      description(
        "Windows",
        both + "<ChannelUri>https://some.url/</ChannelUri>"
          + "<SecondaryTileName>Tile name</SecondaryTileName>")
    ),
  ].map { Scenario(file: "CreateRegistrationAsync_\($0.0)", requests: [post($0.1)]) }

  static let changes: [Scenario] = [
    Scenario(
      file: "CreateRegistrationIdAsync_CallMethod_GetRegistrationId", requests: [post("")]),
    Scenario(
      file: "CreateOrUpdateRegistrationAsync_UpdateFcmNativeRegistration_GetFcmRegistrationType",
      requests: [post(gcm()), put(gcm("<Tags>tag2</Tags>"))]),
    Scenario(
      file: "CreateOrUpdateRegistrationAsync_UpdateGcmTemplateRegistration_"
        + "GetGcmTemplateRegistrationType",
      requests: [post(gcmTemplate(tag1)), put(gcmTemplate("<Tags>tag2</Tags>"))]),
    Scenario(
      file: "CreateOrUpdateRegistrationAsync_UpsertAppleNativeRegistration_"
        + "GetUpsertedRegistrationBack",
      requests: [post(apple()), put(apple(tag1))]),
    Scenario(
      file: "CreateOrUpdateRegistrationAsync_UpsertAppleNativeRegistrationWithCustomId_"
        + "GetUpsertedRegistrationBack",
      requests: [put(apple())]),
    Scenario(
      file: "UpdateRegistrationAsync_UpdateAppleNativeRegistration_GetUpdatedRegistrationBack",
      requests: [post(apple()), put(apple(tag1), ifMatch: "\"1\"")]),
    Scenario(
      file: "GetRegistrationAsync_CreateFcmNativeRegistrationThenGetFcmRegistrationDescription_"
        + "GetFcmRegistrationType",
      requests: [post(gcm()), get]),
    Scenario(
      file: "GetRegistrationAsync_CreateFcmTemplateRegistrationThenGetFcmTemplateRegistration"
        + "Description_GetFcmTemplateRegistrationType",
      requests: [post(gcmTemplate()), get]),
    Scenario(
      file: "GetRegistrationAsync_CreateFcmTemplateRegistrationThenGetRegistrationDescription_"
        + "GetFcmTemplateRegistrationType",
      requests: [post(gcmTemplate()), get]),
    Scenario(
      file: "GetRegistrationAsync_CreateGcmNativeRegistrationThenGetGcmRegistrationDescription_"
        + "GetGcmRegistrationType",
      requests: [post(gcm()), get]),
    Scenario(
      file: "DeleteRegistrationAsync_DeleteAppleNativeRegistrationByRegistrationId_"
        + "RegistrationIsDeleted",
      requests: [post(apple()), delete, get]),
    Scenario(
      file: "DeleteRegistrationsByChannelAsync_DeleteAppleNativeRegistrationByChannel_"
        + "RegistrationIsDeleted",
      requests: [post(apple()), get, delete, get]),
    Scenario(
      file: "RegistrationExistsAsync_GetNonExistingRegistration",
      requests: [
        post(apple()), Request(method: "GET", unlike: "a copy of a reply to PUT"), delete, get,
      ]),
  ]

  static let lists: [Scenario] = [
    Scenario(
      file: "GetAllRegistrationsAsync_CreateTwoRegistrations_GetAllCreatedRegistrations",
      requests: [post(apple()), post(gcm()), get]),
    Scenario(
      file: "GetAllRegistrationsAsync_CreateGcmAndFcmRegistrations_GetTwoFcmCreatedRegistrations",
      requests: [post(gcm()), post(gcm()), get]),
    Scenario(
      file: "GetAllRegistrationsAsync_UsingTopLessThenNumberOfRegistrations_CorrectContinuation"
        + "TokenIsReturnedThatAllowsToReadAllRegistrations",
      requests: [post(apple()), post(apple()), post(apple()), get, get]),
    Scenario(
      file: "GetRegistrationsByChannelAsync_CreateTwoRegistrationsWithTheSameChannel_"
        + "GetCreatedRegistrationsWithRequestedChannel",
      requests: [post(apple()), post(apple()), post(gcm()), get]),
    Scenario(
      file: "GetRegistrationsByChannelAsync_CreateGcmAndFcmRegistrations_"
        + "GetTwoFcmCreatedRegistrations",
      requests: [post(gcm()), post(gcm()), get]),
    Scenario(
      file: "GetRegistrationsByTagAsync_CreateTwoRegistrationsWithTheSameTag_"
        + "GetCreatedRegistrationsWithRequestedTag",
      requests: [post(apple(tag1)), post(apple(tag1)), post(gcm()), get]),
    Scenario(
      file: "GetRegistrationsByTagAsync_CreateGcmAndFcmTemplateRegistrations_"
        + "GetTwoFcmTemplateCreatedRegistrations",
      requests: [
        post(
          gcmTemplate("<Tags>tag2</Tags>", name: "<TemplateName>Gcm Template Name</TemplateName>")),
        post(
          gcmTemplate("<Tags>tag2</Tags>", name: "<TemplateName>Fcm Template Name</TemplateName>")),
        get,
      ]),
  ]

  @Test(
    "they are answered as recorded",
    arguments: TestedEngine.installed, creations + changes + lists)
  func replay(engine: TestedEngine, scenario: Scenario) async throws {
    try await withHub(hubs: ["sdk-sample-nh"], on: engine) {
      try await RecordingReplay.run(scenario, on: $0)
    }
  }

  @Test("every recording of registrations is replayed")
  func isComplete() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      .filter { $0.contains("Registration") }
    let replayed = (Self.creations + Self.changes + Self.lists).map { "\($0.file).http" }
    #expect(Set(replayed) == Set(files))
    #expect(files.count == 30)
  }
}
