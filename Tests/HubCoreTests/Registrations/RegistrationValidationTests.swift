import Foundation
import HubCore
import NotificationHubs
import Testing

/// The table of docs/protocol/rest.md, section 3.11.
@Suite("Registrations that a hub takes, and those it does not")
struct RegistrationValidationTests {
  private static let toast = "<toast><visual>$(message)</visual></toast>"
  private static let tile =
    #"<wp:Notification xmlns:wp="WPNotification"><wp:Tile Id="$(id)"/></wp:Notification>"#

  private static func body(_ text: String) -> String {
    "<BodyTemplate><![CDATA[\(text)]]></BodyTemplate>"
  }

  private static func headers(_ kind: String, _ pairs: [(String, String)]) -> String {
    "<\(kind)Headers>"
      + pairs.map {
        "<\(kind)Header><Header>\($0.0)</Header><Value>\($0.1)</Value></\(kind)Header>"
      }
      .joined() + "</\(kind)Headers>"
  }

  private static func apple(_ body: String, _ members: String = "") -> (String, String) {
    ("AppleTemplate", "<DeviceToken>0A</DeviceToken>\(Self.body(body))\(members)")
  }

  private static func windows(
    _ body: String, _ pairs: [(String, String)] = [("X-WNS-Type", "wns/toast")]
  ) -> (String, String) {
    (
      "WindowsTemplate",
      "<ChannelUri>https://w.example/a</ChannelUri>\(Self.body(body))" + headers("Wns", pairs)
    )
  }

  private static func mpns(_ body: String, _ pairs: [(String, String)] = []) -> (String, String) {
    (
      "MpnsTemplate",
      "<ChannelUri>https://m.example/a</ChannelUri>\(Self.body(body))" + headers("Mpns", pairs)
    )
  }

  private static func gcm(_ body: String, _ members: String = "") -> (String, String) {
    ("GcmTemplate", "<GcmRegistrationId>a</GcmRegistrationId>\(Self.body(body))\(members)")
  }

  static let good: [(String, String)] = [
    ("Apple", "<DeviceToken>0a1B</DeviceToken>"),
    ("FcmV1", "<FcmV1RegistrationId>a</FcmV1RegistrationId>"),
    ("Xiaomi", "<XiaomiRegistrationId>a</XiaomiRegistrationId>"),
    (
      "Browser", "<Endpoint>https://p.example</Endpoint><P256DH>k</P256DH><Auth>a</Auth>"
    ),
    apple(#"{"aps":{"alert":"$(message)"}}"#, "<Expiry>0</Expiry>"),
    apple("{}", "<Expiry>2030-01-05T10:00:00Z</Expiry><Priority>255</Priority>"),
    apple("{}", "<Expiry>$(e)</Expiry><Priority>#(p)</Priority>"),
    apple("{}", "<Expiry i:nil=\"true\"/><Priority i:nil=\"true\"/><ApnsHeaders/>"),
    apple("{}", headers("Apns", [("apns-priority", "$(p)"), ("apns-expiration", "-1")])),
    apple("{}", headers("Apns", [("APNS-Push-Type", "alert")])),
    gcm(#"{"data":{"a":"{'Hi, ' + $(name)}"}}"#),
    gcm("{}", "<TemplateName>\(String(repeating: "n", count: 200))</TemplateName>"),
    windows(toast), windows("<tile/>"), windows("<badge/>"), windows(#"{"aps":{}}"#),
    windows("<anything/>", [("x-wns-type", "wns/raw")]),
    windows(toast, [("X-WNS-Type", "wns/toast"), ("X-WNS-Tag", "$(tag)")]),
    mpns(tile, [("X-WindowsPhone-Target", "token"), ("X-NotificationClass", "1")]), mpns(tile),
    mpns("<own/>", [("X-NotificationClass", "3")]),
    mpns("<own/>", [("X-NotificationClass", "13")]),
  ]

  static let bad: [(String, String)] = [
    ("Apple", "<DeviceToken>0A1</DeviceToken>"), ("Apple", "<DeviceToken>xyz0</DeviceToken>"),
    ("Apple", "<DeviceToken> </DeviceToken>"), ("Gcm", "<GcmRegistrationId> </GcmRegistrationId>"),
    ("Windows", "<ChannelUri>not a uri</ChannelUri>"), ("Mpns", "<ChannelUri>/path</ChannelUri>"),
    ("Browser", "<Endpoint>p.example</Endpoint><P256DH>k</P256DH><Auth>a</Auth>"),
    ("Browser", "<Endpoint>https://p.example</Endpoint><P256DH> </P256DH><Auth>a</Auth>"),
    ("Browser", "<Endpoint>https://p.example</Endpoint><P256DH>k</P256DH>"),
    ("Baidu", "<BaiduUserId>1</BaiduUserId><BaiduChannelId> </BaiduChannelId>"),
    ("Apple", #"<DeviceToken>0A</DeviceToken><PushVariables>["a"]</PushVariables>"#),
    gcm("{}", "<TemplateName>\(String(repeating: "n", count: 201))</TemplateName>"),
    gcm(""), gcm("[]"), gcm("text"), gcm("{"), gcm("<a/>"), gcm(#"{"a":"$(b"}"#),
    gcm(#"{"a":"$()"}"#), apple("{}", "<Expiry>soon</Expiry>"),
    apple("{}", "<Priority>256</Priority>"), apple("{}", "<Priority>high</Priority>"),
    apple("{}", "<Priority>$(p</Priority>"), apple("{}", "<Expiry>$(</Expiry>"),
    apple("{}", headers("Apns", [("apns-priority", "256")])),
    apple("{}", headers("Apns", [("apns-expiration", "soon")])),
    apple("{}", headers("Apns", [("X-Other", "1")])),
    apple("{}", headers("Apns", [("apns-topic", "")])),
    windows(toast, []), windows(toast, [("X-WNS-Type", " ")]),
    windows(toast, [("X-WNS-Type", "wns/toast"), ("X-WNS-Tag", "")]), windows("text"),
    windows("<other/>"), windows("<toast>"), windows("<toast a='$(b'/>"),
    mpns("<Notification/>"), mpns(tile.replacing("Tile", with: "Raw")),
    mpns(tile.replacing("\"WPNotification\"", with: "\"Other\"")),
    mpns("<own/>", [("X-NotificationClass", "2")]),
  ]

  private func create(_ registration: (String, String)) async throws -> StoredRegistration {
    let body =
      #"<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">"#
      + "<\(registration.0)RegistrationDescription "
      + #"xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" "#
      + #"xmlns:i="http://www.w3.org/2001/XMLSchema-instance">\#(registration.1)"#
      + "</\(registration.0)RegistrationDescription></content></entry>"
    let hub = try await TestHub()
    return try await hub.service.registrations.create(hub: hub.hub, body: Array(body.utf8))
  }

  @Test("what the rules allow is kept", arguments: good)
  func takes(type: String, members: String) async throws {
    #expect(try await create((type, members)).etag == 1)
  }

  @Test("what the rules forbid is 400 with a reason", arguments: bad)
  func refuses(type: String, members: String) async throws {
    let failure = await #expect(throws: HubFailure.self) { try await create((type, members)) }
    #expect(failure?.status == 400)
    #expect(failure?.message?.isEmpty == false)
  }
}
