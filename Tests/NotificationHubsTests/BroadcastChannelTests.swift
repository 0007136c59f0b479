import Foundation
import Testing
import Wire

@testable import NotificationHubs

/// Broadcast channels in the SDK.
@Suite struct BroadcastChannelTests {
  private static let id = "+/9tZUNoYW5uZWw="

  @Test func `channels are made, read, listed and deleted as documented`() async throws {
    let channel = BroadcastChannel(id: Self.id, storage: .latestMessage)
    let transport = FakeTransport(
      TransportReply(status: 201, headers: [:], body: Data(channel.json)),
      ClientOperationTests.reply(String(decoding: channel.json, as: UTF8.self)),
      ClientOperationTests.reply(#"{"channels":["AAAA","BBBB"]}"#), TransportReply(status: 204))
    let client = ClientOperationTests.client(transport)
    #expect(try await client.createBroadcastChannel(storing: .latestMessage) == channel)
    #expect(try await client.broadcastChannel(Self.id) == channel)
    #expect(try await client.broadcastChannels() == ["AAAA", "BBBB"])
    try await client.delete(broadcastChannel: Self.id)
    let requests = transport.requests
    #expect(requests.map(\.method) == ["POST", "GET", "GET", "DELETE"])
    #expect(requests[0].body == Data(#"{"storage":"latest"}"#.utf8))
    #expect(requests[1].url.absoluteString.contains("/channels/%2B%2F9tZUNoYW5uZWw%3D?"))
    #expect(requests[2].url.path.hasSuffix("/channels"))
  }

  @Test func `an update goes to its channel with what APNs is told beside it`() async throws {
    let receipt = BroadcastReceipt(requestID: "r", uniqueID: "u")
    let reply = ClientOperationTests.reply(String(decoding: receipt.json, as: UTF8.self))
    let transport = FakeTransport(reply, reply)
    let client = ClientOperationTests.client(transport)
    let end = Date(timeIntervalSince1970: 1_900_000_000)
    let payload = try APNsPayload.broadcast(
      .update, contentState: ["home": 1], priority: .powerAware, expiration: .at(end))
    #expect(try await client.send(payload, toChannel: Self.id) == receipt)
    #expect(try await client.send(payload: Data("{}".utf8), toChannel: Self.id) == receipt)
    let requests = transport.requests
    #expect(requests[0].url.absoluteString.contains("/channels/%2B%2F9tZUNoYW5uZWw%3D/messages?"))
    #expect(requests[0].body == payload.body)
    #expect(requests[0].headers["apns-priority"] == "5")
    #expect(requests[0].headers["apns-expiration"] == "1900000000")
    #expect(requests[1].headers["apns-priority"] == "10")
    #expect(requests[1].headers["apns-expiration"] == "0")
  }

  @Test func `a channel takes Live Activities only`() async throws {
    let transport = FakeTransport()
    let alert = try APNsPayload(.init(alert: .init(title: "Tea")))
    let error = await NotificationHubClientTests.failure {
      try await ClientOperationTests.client(transport).send(alert, toChannel: Self.id)
    }
    #expect(error?.kind == .badRequest && transport.requests.isEmpty)
  }

  @Test func `a broadcast has 5120 bytes, a push to one device 4096`() throws {
    func state(_ count: Int) -> PayloadValue {
      ["text": .string(String(repeating: "x", count: count))]
    }
    let payload = try APNsPayload.broadcast(.update, contentState: state(4500))
    #expect(payload.limit == 5120 && payload.size > 4096)
    #expect(throws: PayloadError.self) {
      try APNsPayload.broadcast(.update, contentState: state(5100))
    }
    #expect(throws: PayloadError.self) {
      try APNsPayload.liveActivity(.update, contentState: state(4500))
    }
  }

  @Test func `an end says when the activity goes`() throws {
    let payload = try APNsPayload.broadcast(
      .end(dismissal: Date(timeIntervalSince1970: 1_900_000_100)), contentState: [:],
      timestamp: Date(timeIntervalSince1970: 1_900_000_000))
    let aps = try JSONValue.parse(payload.body)["aps"]
    #expect(aps?["event"]?.scalarText == "end")
    #expect(aps?["dismissal-date"]?.scalarText == "1900000100")
    #expect(payload.headers["apns-push-type"] == "liveactivity")
    #expect(payload.headers["apns-expiration"] == "0")
    #expect(payload.headers["apns-priority"] == "10")
  }

  @Test(arguments: [
    ("c29tZUNoYW5uZWw=", true), ("+/9tZUNoYW5uZWw=", true), ("AAAA", true), ("", false),
    ("AAA", false), ("a b=", false), ("no-base-64!", false),
    (String(repeating: "A", count: 64), true), (String(repeating: "A", count: 68), false),
  ])
  func `an id is base 64 of at most 64 characters`(text: String, isID: Bool) {
    #expect(BroadcastChannel.isID(text) == isID)
  }

  @Test(arguments: ["", "{}", "[]", #"{"id":1}"#, #"{"id":"AAAA","storage":"all"}"#])
  func `a reply that is no channel is refused`(text: String) {
    #expect(throws: WireFormatError.self) { try BroadcastChannel(json: Array(text.utf8)) }
  }
}
