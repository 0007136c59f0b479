import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("Baidu gateway", .timeLimit(.minutes(5)))
struct BaiduGatewayTests {
  private static let body = PushBody(bytes: Array(#"{"title":"t","description":"d ~*"}"#.utf8))

  private func withBaidu(
    path: String = "", push: @escaping FakeService.Answer,
    body: (GatewayRoom) async throws -> Void
  ) async throws {
    try await withGateway(.baidu) { server in
      ["BaiduApiKey": "key", "BaiduSecretKey": "secret", "BaiduEndPoint": server.url(path)]
    } push: {
      await push($0)
    } body: {
      try await body($0)
    }
  }

  @Test("signatures are the vectors'", arguments: try Vectors.read().baiduSign)
  func signatures(example: Vectors.Signature) {
    let fields = example.params.map { (name: $0.key, value: $0.value) }
    let sign = BaiduSignature.sign(
      method: example.method, url: example.url, fields: fields, secret: example.secret)
    #expect(sign == example.sign)
  }

  @Test("both forms of the interface are spoken", arguments: ["", "/rest/3.0"])
  func message(path: String) async throws {
    try await withBaidu(path: path) { _ in
      FakeService.json(200, #"{"request_id":1,"response_params":{"msg_id":"1","send_time":1}}"#)
    } body: { room in
      var body = Self.body
      body.expiry = 1_700_000_600
      let results = await room.send(body, to: ["77-88"])
      #expect(results[0].outcome == .success)
      let push = try #require(room.service.pushes.first)
      var form = push.form
      let sign = form.removeValue(forKey: "sign")
      let url = room.server.url(push.path)
      #expect(
        sign
          == BaiduSignature.sign(
            method: "POST", url: url, fields: form.map { (name: $0.key, value: $0.value) },
            secret: "secret"))
      #expect(form["timestamp"] == "1700000000")
      #expect(form["channel_id"] == "88")
      #expect(form["apikey"] == "key")
      if path.isEmpty {
        #expect(push.path == "/rest/2.0/channel/channel")
        #expect(form["user_id"] == "77")
        #expect(form["method"] == "push_msg")
        #expect(form["push_type"] == "1")
        #expect(form["message_type"] == "1")
        #expect(form["messages"] == #"{"title":"t","description":"d ~*"}"#)
        #expect(form["msg_keys"] == "00000000-0000-0007-0000-000000000000")
        #expect(form["message_expires"] == "600")
      } else {
        #expect(push.path == "/rest/3.0/push/single_device")
        #expect(form["msg_type"] == "1")
        #expect(form["msg"] == #"{"title":"t","description":"d ~*"}"#)
        #expect(form["msg_expires"] == "600")
        #expect(push.headers["user-agent"]?.hasPrefix("BCCS_SDK/3.0") == true)
      }
    }
  }

  @Test("every row of the table, by each of its codes", arguments: try Vectors.rows("baidu"))
  func rows(row: Vectors.Row) async throws {
    guard row.status != "transport" else { return }
    let status = ["5xx": 502, "error": 403, "any": 400][row.status] ?? Int(row.status) ?? 0
    let codes = row.reason.split(separator: "|").compactMap { Int($0) }
    for code in codes.isEmpty ? [row.reason.contains("other") ? 39999 : 0] : codes {
      try await withBaidu { _ in
        switch (status, code) {
        case (200, _): FakeService.json(200, #"{"request_id":1,"response_params":{"msg_id":"1"}}"#)
        case (_, 0): HTTPResponse(HTTPStatus(rawValue: status), text: "<html>")
        default:
          FakeService.json(status, #"{"request_id":1,"error_code":\#(code),"error_msg":"x"}"#)
        }
      } body: { room in
        expectRow(row, await room.send(Self.body, to: ["1-2"])[0])
      }
    }
  }

  @Test("the vectors' answers have their outcome", arguments: try Vectors.replies("baidu"))
  func answers(example: Vectors.Answer) async throws {
    try await withBaidu { _ in
      FakeService.json(Int(example.status), example.body)
    } body: { room in
      let result = await room.send(Self.body, to: ["1-2"])[0]
      #expect(result.outcome.name == example.outcome)
      #expect((result.handle == .remove) == (example.remove ?? false))
    }
  }

  @Test("a handle that is not two ids is not sent to", arguments: ["", "abc", "1-"])
  func badHandle(handle: String) async throws {
    try await withBaidu { _ in
      HTTPResponse(.ok)
    } body: { room in
      let result = await room.send(Self.body, to: [handle])[0]
      #expect(result.outcome == .badChannel)
      #expect(room.service.pushes.isEmpty)
    }
  }

  @Test(
    "the header, or else the payload, says whether it is a notification",
    arguments: [
      (#"{"description":"d"}"#, nil, true), (#"{"x":1}"#, nil, false),
      (#"{"description":"d"}"#, "0", false), (#"{"description":"d"}"#, "1", true),
    ])
  func kinds(text: String, header: String?, expected: Bool) throws {
    var body = PushBody(bytes: Array(text.utf8))
    body.headers["x-baidu-message-type"] = header
    #expect(try BaiduBody(body, now: 0).isNotification == expected)
  }
}
