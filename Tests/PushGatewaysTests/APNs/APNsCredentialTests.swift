import Cryptography
import Foundation
import HubCore
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("APNs credentials")
struct APNsCredentialTests {
  static let now = Date(timeIntervalSince1970: 1_700_000_000)

  private func complaint(_ credential: PushCredential, at now: Date = now) -> String? {
    do throws(CredentialError) {
      _ = try APNsCredential(credential, at: now)
      return nil
    } catch {
      return error.description
    }
  }

  @Test(
    "an endpoint is read in every form it is written",
    arguments: [
      ("https://api.push.apple.com:443/3/device", "api.push.apple.com"),
      ("https://api.push.apple.com", "api.push.apple.com"),
      ("API.PUSH.APPLE.COM", "api.push.apple.com"),
      ("https://api.push.apple.com:2197/", "api.push.apple.com:2197"),
      ("https://api.development.push.apple.com:443/3/device", "api.development.push.apple.com"),
      ("gateway.push.apple.com", "api.push.apple.com"),
      ("gateway.push.apple.com:2195", "api.push.apple.com"),
      ("feedback.push.apple.com", "api.push.apple.com"),
      ("gateway.sandbox.push.apple.com", "api.sandbox.push.apple.com"),
      ("https://localhost:9443", "localhost:9443"), ("127.0.0.1:9443", "127.0.0.1:9443"),
      (" https://[::1]:9443/3/device ", "[::1]:9443"),
    ])
  func endpoints(text: String, authority: String) throws {
    #expect(try APNsEndpoint(text).authority == authority)
  }

  @Test(
    "another endpoint is refused with what to put there",
    arguments: [
      "http://api.push.apple.com", "https://", "https://host/other", "https://user@host",
      "https://host:0", "https://host:70000", "https://host?x=1", "a b", "ftp://host", "",
    ])
  func badEndpoints(text: String) {
    #expect(
      complaint(APNsFixture.tokenCredential(["Endpoint": text]))?.contains("Endpoint") == true)
  }

  @Test("environments belong to Apple's hosts; another host may be either")
  func environments() throws {
    #expect(try APNsEndpoint("gateway.push.apple.com").environment == .production)
    #expect(try APNsEndpoint("https://api.development.push.apple.com").environment == .development)
    #expect(try APNsEndpoint("https://localhost:1").environment == nil)
  }

  @Test("a token credential reads, whatever the letter case of its names")
  func token() throws {
    let source = APNsFixture.tokenCredential()
    let folded = PushCredential(
      platform: .apns,
      properties: Dictionary(
        uniqueKeysWithValues: source.properties.map { ($0.key.uppercased(), $0.value) }),
      modifiedAt: Self.now)
    for credential in [source, folded] {
      let read = try APNsCredential(credential, at: Self.now)
      #expect(read.topic == "com.example.app")
      guard case .token(let key) = read.proof else {
        Issue.record("not a token credential")
        continue
      }
      #expect(key.id == "ABC123DEFG")
      #expect(key.team == "DEF123GHIJ")
      #expect(try key.key.publicKey().pem == APNsFixture.all.publicKeyPEM)
    }
  }

  @Test(
    "a token credential's fault is named by its property",
    arguments: [
      ("Token", nil), ("Token", ""), ("Token", "no key"), ("Token", APNsFixture.all.rsaKeyPEM),
      ("KeyId", nil), ("KeyId", "ABC"), ("KeyId", "ABC123DEFGH"), ("KeyId", "ABC123DEF\""),
      ("AppId", nil), ("AppId", "short"), ("AppName", nil), ("AppName", "com.example app"),
      ("AppName", String(repeating: "a", count: 256)), ("Endpoint", nil),
    ] as [(String, String?)])
  func badTokens(name: String, value: String?) {
    let text = complaint(APNsFixture.tokenCredential([name: value]))
    #expect(text?.hasPrefix(name) == true)
    // Never the secret itself.
    #expect(text?.contains("MIG") == false)
  }

  @Test("both families at once, or neither, is refused")
  func families() {
    let both = APNsFixture.tokenCredential(["ApnsCertificate": "AAAA"])
    #expect(complaint(both)?.contains("one of them only") == true)
    let neither = PushCredential(
      platform: .apns, properties: ["Endpoint": "localhost"], modifiedAt: Self.now)
    #expect(complaint(neither)?.contains("Neither") == true)
    // Forms send empty fields for the other family.
    #expect(
      complaint(APNsFixture.tokenCredential(["ApnsCertificate": "", "CertificateKey": " "])) == nil)
  }

  @Test("the vectors' certificates are credentials", arguments: APNsFixture.all.archives)
  func certificates(archive: APNsFixture.Archive) throws {
    let thumbprint = archive.expect.sha1ThumbprintHex.uppercased()
    let credential = APNsFixture.certificateCredential(archive, ["Thumbprint": thumbprint])
    let read = try APNsCredential(credential, at: Self.now)
    #expect(read.topic == archive.expect.uid)
    #expect(read.endpoint.host == "api.sandbox.push.apple.com")
    guard case .certificate = read.proof else {
      Issue.record("not a certificate credential")
      return
    }
  }

  @Test("a certificate credential's fault is named by its property")
  func badCertificates() throws {
    let archive = try #require(
      APNsFixture.all.archives.first { $0.name == "single_topic_dev_3des" })
    func complaint(_ changes: [String: String?], at now: Date = Self.now) -> String {
      self.complaint(APNsFixture.certificateCredential(archive, changes), at: now) ?? "none"
    }
    #expect(complaint([:]) == "none")
    #expect(
      complaint(["CertificateKey": archive.wrongPassword]).hasPrefix("CertificateKey is wrong"))
    #expect(complaint(["CertificateKey": nil]).hasPrefix("CertificateKey is wrong"))
    #expect(complaint(["ApnsCertificate": nil]).hasPrefix("ApnsCertificate is missing"))
    #expect(complaint(["ApnsCertificate": "%"]).hasPrefix("ApnsCertificate is not base 64"))
    #expect(complaint(["ApnsCertificate": "AAAA"]).hasPrefix("ApnsCertificate cannot be used"))
    #expect(complaint(["Thumbprint": "00"]).hasPrefix("Thumbprint"))
    #expect(complaint(["Endpoint": "gateway.push.apple.com"]).contains("development only"))
    #expect(complaint(["Endpoint": "https://localhost:9443"]) == "none")
    #expect(complaint([:], at: .distantFuture).contains("has expired"))
    #expect(complaint([:], at: .distantPast).contains("not valid yet"))
  }
}
