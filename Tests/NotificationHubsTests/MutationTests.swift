import Foundation
import Testing
import Wire

@testable import NotificationHubs

/// Damaged input for every parser that meets the network: nothing may trap, and whatever still
/// reads must print to something that reads the same.
@Suite("Damaged input")
struct MutationTests {
  /// The same numbers on every run (Knuth's MMIX generator).
  struct Generator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ state >> 33
    }
  }

  static func mutants(
    of seeds: [String], count: Int = 4_000, _ check: ([UInt8]) throws -> Void
  ) rethrows {
    var random = Generator(state: 20_301_231)
    let spice = Array("\"'\\{}[](),:!&|$%=+-.~/ 0eu\u{0}\u{7F}é".utf8) + [0xFF, 0xED, 0xA0]
    for index in 0..<count {
      var bytes = Array(seeds[index % seeds.count].utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
        let at = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes.remove(at: at)
        case 1: bytes.insert(spice[Int.random(in: 0..<spice.count, using: &random)], at: at)
        case 2: bytes[at] = spice[Int.random(in: 0..<spice.count, using: &random)]
        default: bytes.removeSubrange(at..<min(bytes.count, at + 9))
        }
      }
      try check(bytes)
    }
  }

  @Test("installations")
  func installations() throws {
    let seeds = [
      #"{"installationId":"i","platform":"apns","pushChannel":"0A1B","tags":["a","b"],"templates":{"t":{"body":"x\u00e9","headers":{"a":"b"},"expiry":"0"}},"expirationTime":"2030-10-01T10:00:00Z"}"#,
      #"{'platform':'browser',pushChannel:{endpoint:'e',p256dh:'p',auth:'a'},pushVariables:{a:1}}"#,
    ]
    try Self.mutants(of: seeds) { bytes in
      guard let read = try? Installation.decodeRequest(bytes, id: "i") else { return }
      let again = try Installation.decode(read.hubJSON)
      #expect(again.hubJSON == read.hubJSON)
    }
  }

  @Test("patches")
  func patches() throws {
    let seeds = [
      #"[{"op":"add","path":"/templates/n~1/body","value":"{\"body\":\"b\"}"},{"op":"remove","path":"/tags/a"}]"#,
      #"[{"op":"replace","path":"/secondaryTiles/tile/templates/u","value":{"body":"x"}}]"#,
    ]
    try Self.mutants(of: seeds) { (bytes: [UInt8]) throws in
      guard let read = try? InstallationPatch.decode(bytes) else { return }
      let again = try InstallationPatch(jsonData: read.jsonData)
      #expect(again == read)
      _ = try? read.applied(to: InstallationPatchTests.before)
    }
  }

  @Test("tag expressions")
  func tagExpressions() throws {
    try Self.mutants(of: ["(red || blue) && !$UserId:{b=b} && en", "!!(a||!b)||c"]) { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      guard let read = try? TagExpression(parsing: text) else { return }
      let again = try TagExpression(parsing: read.description)
      #expect(again.description == read.description)
    }
  }

  @Test("tokens, connection strings, dates and documents")
  func others() {
    let seeds =
      SharedAccessSignatureTests.vectors.map(\.token) + [
        ConnectionStringTests.text, "2030-10-01T12:30:00.1234567+02:30", WireDocumentTests.document,
        "sb://[::1]:8080/",
      ]
    Self.mutants(of: seeds) { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      if let token = try? SharedAccessSignature(parsing: text) {
        _ = token.isSigned(with: "k")
        _ = token.covers(path: text, hosts: [text, "h"])
        _ = token.keyNameCandidates
      }
      if let read = try? ConnectionString(text) {
        #expect((try? ConnectionString(read.text)) == read)
      }
      if let endpoint = ServiceEndpoint(parsing: text) {
        #expect(ServiceEndpoint(parsing: endpoint.description) == endpoint)
      }
      if let date = WireDate.parse(text) {
        #expect(WireDate.parse(WireDate.precise(date)) != nil)
      }
      _ = try? NotificationTelemetry(xml: Data(bytes))
      _ = ErrorEnvelope(xml: Data(bytes))
    }
  }
}
