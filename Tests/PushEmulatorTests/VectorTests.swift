import Foundation
import HTTP2
import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 9, check 2: every published case gets the listed answer, over
/// TLS and HTTP/2, on a connection of its own.
@Suite struct VectorTests {
  private static func setUp(_ harness: Harness) async throws {
    let vectors = Vectors.shared
    let key = try #require(vectors.keys["p256_test"])
    try await harness.control(
      "POST", "/v1/apps",
      [
        "pns": "apns", "bundleId": "com.example.app",
        "teamId": .string(vectors.tokens.teamID),
        "keys": [
          [
            "kid": .string(vectors.tokens.kid),
            "publicKeyPem": .string(key.publicSPKI),
          ]
        ],
      ])
    let other = try await harness.control(
      "POST", "/v1/apps", ["pns": "apns", "bundleId": "com.other.app", "teamId": "OTHERTEAM1"])
    let devices: [(String, String, JSONValue)] = [
      ("known", "app-1", [:]), ("voip", "app-1", ["kind": "voip"]),
      ("unregistered", "app-1", ["state": "unregistered", "at": 1_690_000_000_123]),
      ("expired", "app-1", ["state": "expired"]),
      ("other_app", other["appId"]?.text ?? "", [:]), ("sandbox", "app-1", [:]),
    ]
    for (name, app, more) in devices {
      guard case .text(let token)? = vectors.requests.devices[name] else {
        Issue.record("the vectors have no device '\(name)'")
        continue
      }
      let environment = name == "sandbox" ? "sandbox" : "production"
      let handle: JSONValue = ["token": .string(token), "environment": .string(environment)]
      let base: [JSONValue.Member] = [
        .init("appId", .string(app)), .init("handle", handle),
      ]
      try await harness.control("POST", "/v1/devices", .object(base + (more.members ?? [])))
    }
  }

  @Test("a request of the vectors gets its listed answer")
  func requests() async throws {
    let vectors = Vectors.shared.requests
    #expect(vectors.cases.count >= 32)
    try await Harness.run { harness in
      try await Self.setUp(harness)
      for item in vectors.cases {
        var headers = (vectors.base.headers ?? [:]).compactMapValues { $0 }
        for (name, value) in item.headers ?? [:] { headers[name] = value }
        var body = Array((item.bodyText ?? vectors.base.bodyText ?? "").utf8)
        if let count = item.bodyCount {
          body = Array("{}".utf8) + [UInt8](repeating: 0x20, count: count - 2)
        }
        let client = try harness.connect()
        let reply = await client.push(
          item.path ?? vectors.base.path ?? "", headers.map { ($0.key, $0.value) }, body: body,
          method: item.method ?? vectors.base.method ?? "POST")
        let expected = try #require(item.expect)
        let name = item.testDescription
        #expect(reply.failure == nil, "\(name)")
        #expect(reply.status == expected.status, "\(name)")
        #expect(reply.reason == expected.reason, "\(name)")
        if let timestamp = expected.timestamp { #expect(reply.timestamp == timestamp, "\(name)") }
        if item.headers?["apns-id"] == nil {
          #expect(reply.id == headers["apns-id"], "\(name)")
        } else {
          #expect(reply.id.flatMap { APNsMessageID($0) } != nil, "\(name)")
        }
        #expect(
          reply.contentType == (expected.reason == nil ? nil : "application/json"), "\(name)")
        client.connection.close()
      }
    }
  }

  @Test("a provider token of the vectors gets its listed answer")
  func providerTokens() async throws {
    let vectors = Vectors.shared.requests
    let cases = Vectors.shared.tokens.cases
    #expect(cases.count >= 24)
    try await Harness.run { harness in
      try await Self.setUp(harness)
      for item in cases {
        try await harness.clock(["mode": "manual", "now": JSONValue(item.now * 1000)])
        var headers = (vectors.base.headers ?? [:]).compactMapValues { $0 }
        headers["authorization"] = "bearer " + item.token
        let client = try harness.connect()
        let reply = await client.push(
          vectors.base.path ?? "", headers.map { ($0.key, $0.value) },
          body: Array((vectors.base.bodyText ?? "").utf8))
        let got = reply.status == 200 ? "accept" : "\(reply.status) \(reply.reason ?? "")"
        // Stricter than the real service: PyAPNs2, kalyke and Pushy send such tokens.
        let isTooStrict = ["iat_string", "der_signature_instead_of_raw"].contains(item.name)
        #expect(got == (isTooStrict ? "accept" : item.expect), "\(item.name)")
        client.connection.close()
      }
    }
  }
}
