import Cryptography
import HubCore
import Testing

@testable import PushGateways

@Suite("Web Push credentials")
struct WebPushCredentialTests {
  @Test("a pair is taken as libraries write it, the private key also as PEM")
  func whole() throws {
    let pair = PushFixture.all.keys.p256
    let standard = pair.public_uncompressed_b64u.replacing("-", with: "+").replacing("_", with: "/")
    for changes in [
      [:], ["VapidPublicKey": standard + "="], ["VapidPrivateKey": pair.private_pkcs8_pem],
      ["Subject": "https://example.com/contact"],
    ] as [[String: String?]] {
      let credential = try WebPushCredential(PushFixture.webPush(changes))
      #expect(try credential.key.publicKey().point == credential.point)
    }
  }

  @Test(
    "what cannot work is refused by the property's name, without its value",
    arguments: [
      ("VapidPublicKey", nil), ("VapidPublicKey", "AAAA"), ("VapidPrivateKey", nil),
      ("VapidPublicKey", PushFixture.all.keys.p256Other.public_uncompressed_b64u),
      ("VapidPrivateKey", "AAAA"), ("VapidPrivateKey", "not a key"), ("Subject", nil),
      ("Subject", "ops@example.com"), ("Subject", "mailto:"), ("Subject", "mailto:a b@c"),
      ("Subject", "mailto:<a@b.example>"), ("Subject", "mailto:a@localhost"),
      ("Subject", "https://localhost:8080/x"), ("Subject", "http://example.com"),
    ] as [(String, String?)])
  func faults(name: String, value: String?) {
    do throws(CredentialError) {
      _ = try WebPushCredential(PushFixture.webPush([name: value]))
      Issue.record("taken")
    } catch {
      #expect(error.description.hasPrefix(name))
      if let value, value.count > 8 { #expect(!error.description.contains(value)) }
    }
  }
}
