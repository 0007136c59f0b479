import Foundation
import HTTP2
import HTTPClient
import HubCore
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("Hosts that credentials may name")
struct ServiceHostsTests {
  static let foreign: [(PushPlatform, [String: String])] = [
    (.adm, ["ClientId": "a", "ClientSecret": "b", "AuthTokenUrl": "https://HOST/t"]),
    (.adm, ["ClientId": "a", "ClientSecret": "b", "SendUrlTemplate": "https://HOST/{0}"]),
    (
      .wns,
      [
        "PackageSid": "ms-app://s-1-15-2-1-2", "SecretKey": "x",
        "WindowsLiveEndpoint": "https://HOST/x",
      ]
    ),
    (
      .wns,
      [
        "TenantId": "t", "ClientId": "c", "ClientSecret": "x",
        "WindowsLiveEndpoint": "https://HOST:1/",
      ]
    ),
    (
      .baidu, ["BaiduApiKey": "k", "BaiduSecretKey": "s", "BaiduEndPoint": "https://HOST/rest/3.0"]
    ),
    (.xiaomi, ["AppSecret": "s", "Endpoint": "https://HOST"]),
    (.gcm, ["GoogleApiKey": "k", "GcmEndpoint": "https://HOST/x"]),
    (.fcmv1, PushFixture.fcm(["Endpoint": "https://HOST:8443"]).properties),
    (.fcmv1, PushFixture.fcm(["TokenUri": "https://HOST/token"]).properties),
    (.apns, APNsFixture.tokenCredential(["Endpoint": "https://HOST:2197"]).properties),
    (.apns, APNsFixture.tokenCredential(["OtherEndpoint": "https://HOST"]).properties),
  ]

  @Test("only the vendor's, and those that the operator allows", arguments: foreign)
  func hosts(platform: PushPlatform, properties: [String: String]) async throws {
    for (host, isAllowed) in [
      ("127.0.0.1", false), ("localhost", false), ("10.0.0.7", false), ("[::1]", false),
      ("metadata.internal", false), ("api.amazon.com.evil.example", false),
      ("evilapi.push.apple.com.example", false), ("stand-in.example", true),
      ("a.lab.example", true),
    ] {
      var configuration = PushGatewaysConfiguration()
      configuration.serviceHosts = ["stand-in.example", ".lab.example"]
      let directory = PushGatewayDirectory(configuration, clock: .system, random: .system)
      let credential = PushCredential(
        platform: platform,
        properties: properties.mapValues { $0.replacing("HOST", with: host) },
        modifiedAt: .distantPast)
      if isAllowed {
        _ = try await directory.gateway(for: credential, hub: 1)
      } else {
        let error = await #expect(throws: CredentialError.self) {
          _ = try await directory.gateway(for: credential, hub: 1)
        }
        #expect(error?.description.contains("serviceHosts") == true, "\(host)")
      }
    }
  }

  @Test(
    "a vendor's host is called at the service's own ports",
    arguments: [
      (
        .adm,
        ["ClientId": "c", "ClientSecret": "s", "AuthTokenUrl": "https://api.amazon.com:8443/t"]
      ),
      (.fcmv1, PushFixture.fcm(["Endpoint": "https://fcm.googleapis.com:22"]).properties),
      (
        .fcmv1, PushFixture.fcm(["TokenUri": "https://oauth2.googleapis.com:8080/token"]).properties
      ),
      (
        .apns, APNsFixture.tokenCredential(["Endpoint": "https://api.push.apple.com:25"]).properties
      ),
    ] as [(PushPlatform, [String: String])])
  func ports(platform: PushPlatform, properties: [String: String]) async throws {
    let credential = PushCredential(
      platform: platform, properties: properties, modifiedAt: .distantPast)
    let error = await #expect(throws: CredentialError.self) {
      _ = try await PushGatewayDirectory(clock: .system, random: .system).gateway(
        for: credential, hub: 1)
    }
    #expect(error?.description.contains("where the service does not listen") == true)
    let usual = PushCredential(
      platform: .apns,
      properties: APNsFixture.tokenCredential(["Endpoint": "https://api.push.apple.com:2197"])
        .properties, modifiedAt: .distantPast)
    _ = try await PushGatewayDirectory(clock: .system, random: .system).gateway(for: usual, hub: 1)
  }

  @Test("a channel endpoint for broadcasts is looked at, too")
  func broadcasts() async throws {
    await #expect(throws: CredentialError.self) {
      _ = try await PushGatewayDirectory(clock: .system, random: .system).broadcasts(
        with: APNsFixture.tokenCredential(["BroadcastEndpoint": "https://127.0.0.1:1"]), hub: 1)
    }
  }

  @Test("what a vendor's name leads to is looked at for each connection")
  func addresses() async throws {
    let hosts = ServiceHosts(.forStandIns)
    #expect(
      try hosts.isPublicOnly(
        "api.push.apple.com", port: 443, vendor: [".push.apple.com"], property: "x"))
    #expect(
      try !hosts.isPublicOnly("localhost", port: 1, vendor: [".push.apple.com"], property: "x"))
    let sessions = GatewaySessions(PushGatewaysConfiguration())
    let call = HTTPCall(url: "https://127.0.0.1:1/")
    for (isPublicOnly, kind) in [(true, HTTPFailure.Kind.refusedAddress), (false, .connect)] {
      let session = sessions.session(isPublicOnly: isPublicOnly)
      let error = await #expect(throws: HTTPFailure.self) { _ = try await session.send(call) }
      #expect(error?.kind == kind)
    }
    var connection = HTTP2PoolConfiguration(idleTimeout: .seconds(1)).connection(
      to: "localhost", port: 1, extraAnchorsPEM: [])
    connection.requirePublicAddress()
    #expect(connection.allowsAddress?([127, 0, 0, 1]) == false)
    #expect(connection.allowsAddress?([17, 188, 1, 1]) == true)
  }
}
