import HubCore
import Testing

@testable import PushGateways

@Suite("FCM credentials")
struct FCMCredentialTests {
  @Test("a service account is taken, its line breaks as they come, with Google's addresses")
  func whole() throws {
    let pem = PushFixture.all.keys.rsa.private_pkcs8_pem
    for key in [pem, pem.replacing("\n", with: "\\n"), "  \(pem)\n"] {
      let credential = try FCMCredential(PushFixture.fcm(["PrivateKey": key]))
      #expect(credential.project == "demo-project")
      #expect(credential.origin == Origin(host: "fcm.googleapis.com", port: 443))
      #expect(credential.tokenURI == "https://oauth2.googleapis.com/token")
      #expect(credential.keyID == nil)
    }
  }

  @Test(
    "what cannot work is refused by the property's name, without its value",
    arguments: [
      ("ProjectId", nil), ("ProjectId", " "), ("ProjectId", "a/b"), ("ClientEmail", nil),
      ("ClientEmail", "nobody"), ("ClientEmail", "a\"@b"), ("PrivateKey", nil),
      ("PrivateKey", "no key at all"), ("PrivateKey", "-----BEGIN PRIVATE KEY-----"),
      ("PrivateKey", PushFixture.all.keys.p256.private_pkcs8_pem), ("PrivateKeyId", "a b"),
      ("Endpoint", "http://localhost"), ("Endpoint", "https://x/y"), ("Endpoint", "https://"),
      ("TokenUri", "http://localhost/token"), ("TokenUri", "file:///etc/passwd"),
    ] as [(String, String?)])
  func faults(name: String, value: String?) {
    do throws(CredentialError) {
      _ = try FCMCredential(PushFixture.fcm([name: value]))
      Issue.record("taken")
    } catch {
      #expect(error.description.hasPrefix(name))
      if let value, value.count > 8 { #expect(!error.description.contains(value)) }
    }
  }
}
