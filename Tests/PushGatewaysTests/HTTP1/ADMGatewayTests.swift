import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("ADM gateway", .timeLimit(.minutes(5)))
struct ADMGatewayTests {
  private static let body = PushBody(bytes: Array(#"{"data":{"a":"b"}}"#.utf8))

  private func withADM(
    push: @escaping FakeService.Answer, body: (GatewayRoom) async throws -> Void
  ) async throws {
    try await withGateway(.adm) { server in
      [
        "ClientId": "amzn1.application-oa2-client.abc", "ClientSecret": "0123abcd",
        "AuthTokenUrl": server.url("/token"),
        "SendUrlTemplate": server.url("/messaging/registrations/{0}/messages"),
      ]
    } push: {
      await push($0)
    } body: {
      try await body($0)
    }
  }

  @Test("a message goes out as ADM wants it")
  func message() async throws {
    try await withADM { _ in
      FakeService.json(200, #"{"registrationID":"amzn1.reg/x="}"#)
    } body: { room in
      var body = Self.body
      body.expiry = 1_700_000_600
      let results = await room.send(body, to: ["amzn1.reg/x="])
      #expect(results[0].outcome == .success)
      #expect(results[0].handle == .keep)
      let push = try #require(room.service.pushes.first)
      #expect(push.path == "/messaging/registrations/amzn1.reg%2Fx%3D/messages")
      for (name, value) in [
        "authorization": "Bearer token1", "content-type": "application/json",
        "accept": "application/json",
        "x-amzn-type-version": "com.amazon.device.messaging.ADMMessage@1.0",
        "x-amzn-accept-type": "com.amazon.device.messaging.ADMSendResult@1.0",
      ] {
        #expect(push.headers[name] == value, "\(name)")
      }
      #expect(
        push.body == #"{"data":{"a":"b"},"expiresAfter":600,"md5":"2BYMmz3CDU6TGutPRSYhVQ=="}"#)
      #expect(room.service.tokens.first?.form["scope"] == "messaging:push")
    }
  }

  @Test("every row of the table, by its answer", arguments: try Vectors.rows("adm"))
  func rows(row: Vectors.Row) async throws {
    guard !row.status.hasPrefix("token"), row.status != "transport" else { return }
    let status = ["4xx": 418, "5xx": 504][row.status] ?? Int(row.status) ?? 0
    let reason = row.reason
    try await withADM { _ in
      if status == 200 {
        return FakeService.json(
          200, #"{"registrationID":"\#(reason.isEmpty ? "old-id" : "new-id")"}"#)
      }
      return FakeService.json(status, #"{"reason":"\#(reason)"}"#)
    } body: { room in
      let results = await room.send(Self.body, to: ["old-id"])
      expectRow(row, results[0])
      #expect(results[0].newHandle == (row.handle == "replace" ? "new-id" : nil))
      #expect(room.service.pushes.count == (row.retry == "refresh-once" ? 2 : 1))
    }
  }

  @Test("the vectors' answers have their outcome", arguments: try Vectors.replies("adm"))
  func answers(example: Vectors.Answer) async throws {
    try await withADM { _ in
      FakeService.json(Int(example.status), example.body)
    } body: { room in
      let result = await room.send(Self.body, to: [example.sentTo ?? "x"])[0]
      #expect(result.outcome.name == example.outcome)
      #expect(result.newHandle == example.newHandle)
      #expect((result.handle == .remove) == (example.remove ?? false))
    }
  }

  @Test("a limit's pause comes back", arguments: [429, 500, 503])
  func pause(status: Int) async throws {
    try await withADM { _ in
      HTTPResponse(HTTPStatus(rawValue: status), headers: ["Retry-After": "11"])
    } body: { room in
      let result = await room.send(Self.body, to: ["a"])[0]
      #expect(result.retryAfter == 11)
      #expect(result.retry == .backoff)
    }
  }

  @Test(
    "garbage in a good reply changes no handle",
    arguments: [
      "", "<html>", "{\"registra", "[]", "{\"registrationID\":7}", "{\"registrationID\":\"a b\"}",
    ])
  func garbage(text: String) async throws {
    try await withADM { _ in
      FakeService.json(200, text)
    } body: { room in
      let result = await room.send(Self.body, to: ["a"])[0]
      #expect(result.outcome == .success)
      #expect(result.handle == .keep)
    }
  }

  @Test("checksums are the vectors'", arguments: try Vectors.read().admMd5)
  func checksums(example: Vectors.Checksum) {
    #expect(ADMBody.checksum(example.data) == example.md5Base64)
  }

  @Test(
    "what ADM would refuse is refused here",
    arguments: [
      (#"{}"#, NotificationOutcome.invalidNotificationFormat),
      (#"{"data":{"a":1}}"#, .invalidNotificationFormat),
      (#"{"data":[]}"#, .invalidNotificationFormat), (#"x"#, .invalidNotificationFormat),
      (#"{"data":{},"expiresAfter":59}"#, .invalidNotificationFormat),
      (#"{"data":{},"expiresAfter":"x"}"#, .invalidNotificationFormat),
      (#"{"data":{},"expiresAfter":60}"#, .success),
      (#"{"notification":{"title":"x"}}"#, .success),
      (
        #"{"data":{},"consolidationKey":"\#(String(repeating: "k", count: 65))"}"#,
        .invalidNotificationFormat
      ),
      (#"{"data":{"a":"\#(String(repeating: "x", count: 6200))"}}"#, .invalidNotificationSize),
    ])
  func checks(text: String, expected: NotificationOutcome) {
    do throws(PushRefusal) {
      _ = try ADMBody(PushBody(bytes: Array(text.utf8)), now: 0)
      #expect(expected == .success)
    } catch {
      #expect(error.result.outcome == expected)
    }
  }
}
