import Cryptography
import Testing
import Wire

@testable import PushEmulator

/// Tokens that Apple takes although they are not written as its documents say: released clients
/// send them.
@Suite("A provider token")
struct ProviderTokenTests {
  /// A token with these claims, its signature as JWS has it or in DER.
  private func token(
    _ app: EmulatorServer.App, iat: String, isDER: Bool = false
  ) throws -> String {
    let text = try CompactJWS.sign(
      header: Array(#"{"alg":"ES256","kid":"\#(app.keyID)"}"#.utf8),
      claims: Array(#"{"iss":"\#(app.teamID)","iat":\#(iat)}"#.utf8),
      with: P256PrivateKey(pem: app.p8))
    guard isDER else { return text }
    let token = try CompactJWS(text)
    let der = try #require(ECDSASignature.der(raw: token.signature))
    return String(decoding: token.signingInput, as: UTF8.self) + "." + Base64URL.encode(der)
  }

  @Test(
    "may have a DER signature, and an 'iat' with a fraction or as text; the journal warns",
    arguments: [
      ("1700000000", false, []), ("1700000000", true, ["DER"]),
      ("1700000000.25", false, ["iat"]), (#""1700000000""#, false, ["iat"]),
      (#""1700000000.9""#, true, ["DER", "iat"]),
    ])
  func leniency(iat: String, isDER: Bool, warnings: [String]) async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let reply = try await harness.connect().push(
        to: device.token, app, jwt: try token(app, iat: iat, isDER: isDER))
      #expect(reply.status == 200)
      let auth = try await harness.control("GET", "/v1/requests")["requests"]?.items.first?["auth"]
      #expect(auth?["verdict"]?.text == "accepted")
      #expect(auth?["claims"]?["iat"]?.whole == 1_700_000_000)
      let found = (auth?["warnings"]?.items ?? []).compactMap(\.text)
      #expect(found.count == warnings.count)
      for (text, word) in zip(found, warnings) { #expect(text.contains(word)) }
    }
  }

  @Test(
    "is refused with any other 'iat'",
    arguments: [
      #""soon""#, #""""#, #""-1""#, #""1e9""#, #""1.7.0""#, #""0x6553f100""#, "1e300", "-1e300",
      "1700000000000", #""1700000000000""#, "null", "true", "[1700000000]", "1700000500.5",
    ])
  func wrongTimes(iat: String) async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let reply = try await harness.connect().push(
        to: device.token, app, jwt: try token(app, iat: iat))
      #expect(reply.reason == "InvalidProviderToken")
    }
  }

  @Test("in DER is refused when it is another key's, or no strict DER")
  func wrongSignatures() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let good = try token(app, iat: "1700000000", isDER: true)
      let other = EmulatorServer.App(
        appID: app.appID, bundleID: app.bundleID, teamID: app.teamID, keyID: app.keyID,
        p8: try P256PrivateKey().pem())
      let der = try CompactJWS(good).signature
      let input = try CompactJWS(good).signingInput
      for jwt in [
        try token(other, iat: "1700000000", isDER: true),
        String(decoding: input, as: UTF8.self) + "." + Base64URL.encode(der + [0]),
        String(decoding: input, as: UTF8.self) + "." + Base64URL.encode(der.dropLast()),
        String(decoding: input, as: UTF8.self) + "." + Base64URL.encode([0x30, 0]),
      ] {
        let reply = try await harness.connect().push(to: device.token, app, jwt: jwt)
        #expect(reply.reason == "InvalidProviderToken")
      }
    }
  }
}
