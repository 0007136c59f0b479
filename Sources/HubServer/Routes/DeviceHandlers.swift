import HTTPServer
import HubCore
import NotificationHubs

/// Extensions for devices of either kind (`docs/extensions.md`): a search by handle, the size of an
/// audience, the erasure of a user, removed devices.
struct DeviceHandlers: RouteHandlers {
  let api: HubAPI

  /// The handle is sent in the body, because URLs are logged along the way.
  func search(_ call: HubCall) async throws -> HTTPResponse {
    let handle: String
    do { handle = try DeviceSearch.handle(in: call.request.body) } catch {
      throw HubFailure(status: 400, message: error.message)
    }
    let found = try await service.devices(hub: call.hub, handle: handle)
    let search = DeviceSearch(
      installations: found.installations,
      registrations: found.registrations.map { item in
        DeviceSearch.registration(
          Registration(item.stored), id: item.stored.id, installationID: item.installationID,
          endpoint: item.stored.draft.platform == .apns ? found.apnsHosts[item.environment] : nil,
          confirmedTime: item.confirmedAt)
      }, hasMore: found.hasMore)
    return call.replies.json(search.json)
  }

  func countAudience(_ call: HubCall) async throws -> HTTPResponse {
    let tags = call.request.target.queryItem(WireName.audienceTags)
    guard tags?.rawValue == nil || tags?.value != nil else {
      throw HubFailure(
        status: 400, message: "The query parameter tags is not valid percent-encoded text")
    }
    // As in a send's header, a present but empty expression must not match everyone.
    let count = try await service.audienceCount(
      hub: call.hub, tags: tags.map { $0.value ?? "" })
    return call.replies.json(count.json)
  }

  func eraseUser(_ call: HubCall) async throws -> HTTPResponse {
    // The id of the erased user is not recorded again.
    call.activity?.hideObject()
    return call.replies.json(
      try await service.eraseUser(hub: call.hub, userID: call.requiredID()).json)
  }

  func removals(_ call: HubCall) async throws -> HTTPResponse {
    let wave = try wave(in: call.request.target)
    return call.replies.json(try await service.removedDevices(hub: call.hub, wave).json)
  }

  func restore(_ call: HubCall) async throws -> HTTPResponse {
    let wave = try wave(in: call.request.target)
    return call.replies.json(try await service.restoreDevices(hub: call.hub, wave).json)
  }

  private func wave(in target: HTTPTarget) throws(HubFailure) -> RemovalWave {
    var wave = RemovalWave()
    if let item = target.queryItem("platform") { wave.platform = try .named(item.value) }
    if let since = try target.time("since") { wave.since = since }
    return wave
  }
}
