import HTTPServer
import HubCore
import NotificationHubs

/// Broadcast channels of APNs (`docs/extensions.md`).
struct ChannelHandlers: RouteHandlers {
  let api: HubAPI

  func create(_ call: HubCall) async throws -> HTTPResponse {
    let channel = try await service.channels.create(hub: call.hub, body: call.request.body)
    call.activity?.refine(object: channel.id)
    var response = call.replies.json(channel.json, status: .created)
    response.headers.add(
      WireName.location, api.address(of: call.request).appending(channel.id).text)
    return response
  }

  func list(_ call: HubCall) async throws -> HTTPResponse {
    call.replies.json(BroadcastChannel.list(try await service.channels.list(hub: call.hub)))
  }

  func get(_ call: HubCall) async throws -> HTTPResponse {
    let channel = try await service.channels.get(hub: call.hub, id: call.requiredID())
    return call.replies.json(channel.json)
  }

  func delete(_ call: HubCall) async throws -> HTTPResponse {
    try await service.channels.delete(hub: call.hub, id: call.requiredID())
    return call.replies.empty(.noContent)
  }

  func broadcast(_ call: HubCall) async throws -> HTTPResponse {
    let receipt = try await service.channels.broadcast(
      hub: call.hub, channel: call.requiredID(), headers: call.request.headers,
      body: call.request.body)
    observer?.log(
      .info, "broadcast.sent", "",
      [("hub", .text(call.hub.name)), ("bytes", .number(call.request.body.count))])
    return call.replies.json(receipt.json)
  }
}
