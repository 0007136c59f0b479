import Foundation
import HTTPClient
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("Services that have ended", .timeLimit(.minutes(5)))
struct RetiredGatewayTests {
  private static let message = PushBody(bytes: Array(#"{"data":{"a":"b"}}"#.utf8))
  private static let toast = PushBody(
    bytes: Array(
      "<wp:Notification xmlns:wp='WPNotification'><wp:Toast></wp:Toast></wp:Notification>".utf8))

  @Test("nobody is asked, and each handle is told so")
  func retired() async throws {
    try await withGateway(.gcm) { _ in
      ["GoogleApiKey": "AIza", "GcmEndpoint": "https://fcm.googleapis.com/fcm/send"]
    } push: { _ in
      HTTPResponse(.ok)
    } body: { room in
      let results = await room.send(Self.message, to: ["a", "b"])
      #expect(results.map(\.outcome) == [.pnsInterfaceError, .pnsInterfaceError])
      #expect(results[0].reason == "retired service")
      #expect(results[0].retry == .final)
      #expect(results[0].handle == .keep)
    }
    try await withGateway(.mpns) { _ in
      [:]
    } push: { _ in
      HTTPResponse(.ok)
    } body: { room in
      let results = await room.send(Self.toast, to: ["https://db3.notify.live.net/u/1/x"])
      #expect(results.map(\.outcome) == [.pnsInterfaceError])
      #expect(results[0].reason == "retired service")
    }
  }

  @Test("a stand-in for GCM is sent to, row by row", arguments: try Vectors.rows("gcm"))
  func gcm(row: Vectors.Row) async throws {
    guard row.status != "local" else { return }
    let status = ["501-599": 503][row.status] ?? Int(row.status) ?? 0
    for word in row.reason.split(separator: "|").map(String.init) + (row.reason == "" ? [""] : []) {
      try await withGateway(.gcm) { server in
        ["GoogleApiKey": "AIza", "GcmEndpoint": server.url("/gcm/send")]
      } push: { _ in
        let result =
          switch word {
          case "message_id": #"{"message_id":"1"}"#
          case "message_id + registration_id": #"{"message_id":"1","registration_id":"new"}"#
          default: #"{"error":"\#(word)"}"#
          }
        return FakeService.json(status, #"{"multicast_id":1,"results":[\#(result)]}"#)
      } body: { room in
        let result = await room.send(Self.message, to: ["old"])[0]
        expectRow(row, result)
        #expect(result.newHandle == (row.handle == "replace" ? "new" : nil))
        let push = try #require(room.service.pushes.first)
        #expect(push.headers["authorization"] == "key=AIza")
        #expect(push.body == #"{"data":{"a":"b"},"to":"old"}"#)
      }
    }
  }

  @Test("a new handle that no request or database can carry is not taken")
  func gcmGarbage() {
    for id in [#"a\u0000b"#, #"a\nb"#, "a b", "é", ""] {
      let body = #"{"results":[{"message_id":"1","registration_id":"\#(id)"}]}"#
      var reply = HTTPReply(status: 200)
      reply.body = Array(body.utf8)
      let verdict = GCMReply.verdict(reply, now: 0)
      #expect(verdict.rule == GCMReply.success && verdict.newHandle == nil, "\(id)")
    }
  }

  @Test("a stand-in for MPNS is sent to, row by row", arguments: try Vectors.rows("mpns"))
  func mpns(row: Vectors.Row) async throws {
    guard row.status != "transport" else { return }
    let status = Int(row.status) ?? 0
    let parts = row.reason.split(separator: ":").map { $0.trimmingCharacters(in: .whitespaces) }
    try await withGateway(.mpns) { _ in
      [:]
    } push: { _ in
      var response = HTTPResponse(HTTPStatus(rawValue: status))
      if parts.count == 2 { response.headers[parts[0]] = parts[1] }
      return response
    } body: { room in
      let result = await room.send(Self.toast, to: [room.server.url("/u/1")])[0]
      expectRow(row, result)
      #expect(result.retryAfter == ([406, 412].contains(status) ? 3600 : nil))
      let push = try #require(room.service.pushes.first)
      #expect(push.headers["x-windowsphone-target"] == "toast")
      #expect(push.headers["x-notificationclass"] == "2")
      #expect(push.headers["x-messageid"] == "00000000-0000-0007-0000-000000000000")
    }
  }
}
