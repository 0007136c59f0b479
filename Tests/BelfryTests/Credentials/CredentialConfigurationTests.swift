import Cryptography
import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import belfry

@Suite("Credentials in a configuration")
struct CredentialConfigurationTests {
  private let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    let key = try RSAPrivateKey().pem().replacingOccurrences(of: "\n", with: #"\n"#)
    _ = try scratch.file(
      "account.json",
      #"{"project_id":"p-1","client_email":"a@p-1.iam.gserviceaccount.com","private_key":"\#(key)"}"#
    )
    _ = try scratch.file("AuthKey_ABC123DEFG.p8", try P256PrivateKey().pem())
    _ = try scratch.file("vapid.pem", try P256PrivateKey().pem())
    _ = try scratch.file("secret.txt", "from-a-file\n")
    _ = try scratch.file("rsa.pem", try RSAPrivateKey().pem())
    let archive = try CertificateArchive.make(
      lifetime: 90 * 86_400, now: Date(), password: "pw")
    try #require(Data(base64Encoded: archive)).write(
      to: URL(fileURLWithPath: scratch.path + "/push.p12"))
  }

  private func read(
    _ section: String, environment: [String: String] = [:]
  ) throws -> [CredentialSource] {
    let file = try scratch.file(
      "belfry.json", "{ \"hubs\": [ { \"name\": \"news\",\n\(section) } ] }")
    return try Configuration(file: file, environment: environment)
      .hubs.flatMap(\.credentials)
  }

  @Test(
    "every platform has its section",
    arguments: [
      (
        #""apns": { "keyFile": "AuthKey_ABC123DEFG.p8", "teamId": "DEF123GHIJ", "bundleId": "com.a" }"#,
        PushPlatform.apns, "KeyId", "ABC123DEFG"
      ),
      (
        #""apns": { "certificateFile": "push.p12", "password": { "variable": "PW" } }"#, .apns,
        "CertificateKey", "pw"
      ),
      (#""fcm": { "serviceAccount": "account.json" }"#, .fcmv1, "ProjectId", "p-1"),
      (
        #""webPush": { "subject": "mailto:a@b.cc", "privateKeyFile": "vapid.pem" }"#, .browser,
        "Subject", "mailto:a@b.cc"
      ),
      (
        #""browser": { "subject": "mailto:a@b.cc", "privateKeyFile": "vapid.pem" }"#, .browser,
        "Subject", "mailto:a@b.cc"
      ),
      (
        #""wns": { "packageSid": "ms-app://s-1-15-2-1-2-3", "secret": { "variable": "PW" } }"#,
        .wns,
        "SecretKey", "pw"
      ),
      (
        #""wns": { "tenantId": "t", "clientId": "c", "clientSecret": { "file": "secret.txt" } }"#,
        .wns, "ClientSecret", "from-a-file"
      ),
      (
        #""adm": { "clientId": "c", "clientSecret": "plain", "tokenUrl": "https://x/t" }"#, .adm,
        "AuthTokenUrl", "https://x/t"
      ),
      (
        #""baidu": { "apiKey": "k", "secretKey": "s" }"#, .baidu, "BaiduSecretKey", "s"
      ),
      (
        #""xiaomi": { "appSecret": "s", "endpoint": "https://fr-api.xmpush.global.xiaomi.com" }"#,
        .xiaomi, "Endpoint", "https://fr-api.xmpush.global.xiaomi.com"
      ),
    ])
  func good(section: String, platform: PushPlatform, property: String, value: String) throws {
    let found = try read(section, environment: ["PW": "pw"])
    let credential = try #require(found.first).credential(at: Date())
    #expect(found.count == 1 && credential.platform == platform)
    #expect(credential[property] == value)
  }

  @Test(
    "what is wrong is told with file and line, and without the secret",
    arguments: [
      (#""apns": { "keyfile": "x" }"#, "unknown key 'keyfile'; did you mean 'keyFile'?"),
      (#""apns": { "keyFile": "none.p8", "teamId": "t", "bundleId": "b" }"#, "No such file"),
      (#""apns": { "keyFile": "push.p12", "teamId": "t", "bundleId": "b" }"#, "is a .p12 archive"),
      (
        #""apns": { "keyFile": "rsa.pem", "keyId": "K", "teamId": "t", "bundleId": "b" }"#,
        "keyFile is not a signing key"
      ),
      (#""apns": { "certificateFile": "AuthKey_ABC123DEFG.p8" }"#, "not a .p12 archive"),
      (#""apns": { "certificateFile": "push.p12" }"#, "needs its password"),
      (#""apns": { "certificateFile": "push.p12", "password": "hidden" }"#, "does not open"),
      (
        #""apns": { "certificateFile": "push.p12", "password": { "variable": "NOT_SET" } }"#,
        "the variable NOT_SET is not set"
      ),
      (#""fcm": { "account": "x" }"#, "unknown key 'account'"),
      (#""fcm": {}"#, "service account"), (#""fcm": { "serviceAccount": "none" }"#, "No such file"),
      (#""fcm": { "serviceAccount": "vapid.pem" }"#, "not the JSON file of a service account"),
      (#""webPush": { "privateKeyFile": "vapid.pem" }"#, "'subject' is missing"),
      (
        #""webPush": { "subject": "a@b.cc", "privateKeyFile": "vapid.pem" }"#,
        "subject must be mailto:"
      ),
      (#""webPush": { "subject": "mailto:a@b.cc", "privateKeyFile": "rsa.pem" }"#, "P-256"),
      (
        #""webPush": { "subject": "mailto:a@b.cc", "privateKey": "hidden-hidden" }"#, "P-256"
      ),
      (
        #""webPush": { "subject": "mailto:a@b.cc", "privateKeyFile": "vapid.pem", "publicKey": "BA" }"#,
        "publicKey must be"
      ),
      (
        "\"webPush\": { \"subject\": \"mailto:a@b.cc\", \"privateKeyFile\": \"vapid.pem\" },\n"
          + #""browser": { "subject": "mailto:a@b.cc", "privateKeyFile": "vapid.pem" }"#,
        "another name for webPush"
      ),
      (#""wns": { "packageSid": "x", "secret": "hidden" }"#, "packageSid is no Package SID"),
      (#""wns": { "packageSid": "ms-app://s-1-15-2-1-2-3" }"#, "secret is missing"),
      (#""wns": { "packageSid": "x", "tenantId": "t" }"#, "exclude each other"),
      (#""wns": { "tenantId": "t", "clientId": "c" }"#, "clientSecret is missing"),
      (#""wns": { "sid": "x" }"#, "unknown key 'sid'"),
      (#""adm": { "clientId": "c" }"#, "clientSecret is missing"),
      (
        #""adm": { "clientId": "c", "clientSecret": "hidden", "tokenUrl": "http://x" }"#,
        "tokenUrl is no https"
      ),
      (#""adm": { "clientId": "c", "clientSecret": { "file": "none" } }"#, "No such file"),
      (#""adm": { "clientId": "c", "clientSecret": { "env": "X" } }"#, "unknown key 'env'"),
      (#""adm": { "clientId": "c", "clientSecret": {} }"#, "must be a text, or"),
      (#""baidu": { "apiKey": "k" }"#, "secretKey is missing"),
      (#""baidu": { "apiKey": 1 }"#, "must be a text"),
      (#""xiaomi": {}"#, "appSecret is missing"),
      (#""xiaomi": { "appSecret": "hid den" }"#, "appSecret is missing or no secret"),
      (#""xiaomi": 7"#, "must be an object"),
      (#""gcm": {}"#, "unknown key 'gcm'"),
    ])
  func bad(section: String, complaint: String) throws {
    do {
      _ = try read(section)
      Issue.record("taken")
    } catch let error as ConfigurationError {
      #expect("\(error)".contains(complaint), "\(error)")
      #expect("\(error)".contains("belfry.json:"), "\(error)")
      #expect(!"\(error)".contains("hidden"))
    }
  }

  @Test("the example shows a section for every platform that can be served")
  func example() throws {
    let file = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "belfry.example.json").path
    let text = try String(contentsOfFile: file, encoding: .utf8)
    for section in CredentialSource.sections where section != "browser" {
      #expect(text.contains("\"\(section)\": {"), "\(section)")
    }
    // What stands there in comments is read like anything else.
    let lines = text.split(separator: "\n").filter { $0.hasPrefix("    // ") }
      .map { $0.dropFirst(7) }
    let hub = try ConfigurationParser.parse(lines.joined(separator: "\n"), file: file)
    guard case .object(let members) = hub.value else {
      Issue.record("the example's hub is no object")
      return
    }
    #expect(Set(CredentialSource.sections).isSubset(of: members.map(\.name) + ["browser"]))
  }
}
