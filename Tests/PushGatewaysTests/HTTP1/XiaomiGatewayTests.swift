import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("Xiaomi gateway", .timeLimit(.minutes(5)))
struct XiaomiGatewayTests {
  private static let body = PushBody(
    bytes: Array(#"{"title":"t","description":"d & e","extra":{"jobkey":"k"},"secret":1}"#.utf8))

  private func withXiaomi(
    push: @escaping FakeService.Answer, body: (GatewayRoom) async throws -> Void
  ) async throws {
    try await withGateway(.xiaomi) { server in
      ["AppSecret": "s3cret", "Endpoint": server.url("")]
    } push: {
      await push($0)
    } body: {
      try await body($0)
    }
  }

  @Test("a message goes out as Xiaomi wants it, reduced to the names it knows")
  func message() async throws {
    try await withXiaomi { _ in
      FakeService.json(200, #"{"result":"ok","code":0,"data":{"id":"x"}}"#)
    } body: { room in
      var body = Self.body
      body.expiry = 1_700_000_060
      let results = await room.send(body, to: ["reg/1="])
      #expect(results[0].outcome == .success)
      let push = try #require(room.service.pushes.first)
      #expect(push.path == "/v3/message/regid")
      #expect(push.headers["authorization"] == "key=s3cret")
      #expect(
        push.form == [
          "registration_id": "reg/1=", "title": "t", "description": "d & e",
          "extra.jobkey": "k", "time_to_live": "60000",
        ])
    }
  }

  @Test("every row of the table, by each of its codes", arguments: try Vectors.rows("xiaomi"))
  func rows(row: Vectors.Row) async throws {
    guard row.status != "transport" else { return }
    let status = ["4xx": 401, "5xx": 502][row.status] ?? Int(row.status) ?? 0
    let codes = row.reason.split(separator: "|").compactMap { Int($0) }
    for code in codes.isEmpty ? [row.reason.hasPrefix("0") ? 0 : 99_999] : codes {
      let isBad = row.reason.contains("bad_regids")
      try await withXiaomi { _ in
        FakeService.json(
          status,
          #"{"result":"x","code":\#(code),"data":{"id":"1","bad_regids":"\#(isBad ? "a,r" : "a")"}}"#
        )
      } body: { room in
        expectRow(row, await room.send(Self.body, to: ["r"])[0])
      }
    }
  }

  @Test("the vectors' answers have their outcome", arguments: try Vectors.replies("xiaomi"))
  func answers(example: Vectors.Answer) async throws {
    try await withXiaomi { _ in
      FakeService.json(Int(example.status), example.body)
    } body: { room in
      let result = await room.send(Self.body, to: ["r"])[0]
      #expect(result.outcome.name == example.outcome)
      #expect((result.handle == .remove) == (example.remove ?? false))
      // 2023-11-14 22:13:20 UTC is 06:13:20 in China: the day has 17 h 46 min 40 s left.
      #expect(result.retryAfter == 64_000)
    }
  }

  @Test("a reply that is none of Xiaomi's is told as such", arguments: ["", "<html>", "{}", "[0]"])
  func garbage(text: String) async throws {
    try await withXiaomi { _ in
      FakeService.json(200, text)
    } body: { room in
      let result = await room.send(Self.body, to: ["r"])[0]
      #expect(result.outcome == .pnsInterfaceError)
      #expect(result.handle == .keep)
    }
  }

  @Test(
    "what Xiaomi would refuse is refused here",
    arguments: [
      (#"{"title":"t","description":"d"}"#, NotificationOutcome.success),
      (#"title=t&description=d+e"#, .success), (#"{"pass_through":1,"payload":"p"}"#, .success),
      (#"{"pass_through":1,"payload":{"a":[1,"b"]}}"#, .success),
      (#"{"title":"t"}"#, .invalidNotificationFormat), (#"{}"#, .invalidNotificationFormat),
      (#"{"pass_through":1}"#, .invalidNotificationFormat), ("x", .invalidNotificationFormat),
      (
        #"{"title":"\#(String(repeating: "x", count: 50))","description":"d"}"#,
        .invalidNotificationSize
      ),
      (
        #"{"pass_through":1,"payload":"\#(String(repeating: "x", count: 4097))"}"#,
        .invalidNotificationSize
      ),
    ])
  func checks(text: String, expected: NotificationOutcome) {
    do throws(PushRefusal) {
      _ = try XiaomiBody(PushBody(bytes: Array(text.utf8)), now: 0)
      #expect(expected == .success)
    } catch {
      #expect(error.result.outcome == expected)
    }
  }
}
