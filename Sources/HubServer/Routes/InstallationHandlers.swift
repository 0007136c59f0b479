import HTTPServer
import HubCore
import NotificationHubs
import Wire

/// Installations (docs/protocol/rest.md, section 4), and their list (`docs/extensions.md`).
struct InstallationHandlers: RouteHandlers {
  let api: HubAPI

  func put(_ call: HubCall) async throws -> HTTPResponse {
    try await service.installations.put(
      hub: call.hub, id: call.requiredID(), body: call.request.body)
    return call.replies.empty(.ok)
  }

  func get(_ call: HubCall) async throws -> HTTPResponse {
    let installation = try await service.installations.get(hub: call.hub, id: call.requiredID())
    return call.replies.document(.ok, installation.hubJSON)
  }

  func patch(_ call: HubCall) async throws -> HTTPResponse {
    try await service.installations.patch(
      hub: call.hub, id: call.requiredID(), body: call.request.body)
    return call.replies.empty(.ok)
  }

  func delete(_ call: HubCall) async throws -> HTTPResponse {
    try await service.installations.delete(hub: call.hub, id: call.requiredID())
    return call.replies.empty(.noContent)
  }

  func list(_ call: HubCall) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.installations.list(
      hub: call.hub, try filter(in: target), after: try position(in: target),
      limit: try target.pageSize())
    var response = call.replies.json(InstallationList.json(page.installations))
    if let next = page.next {
      response.headers.add(
        WireName.continuationToken, ContinuationToken.encode(Array(String(next).utf8)))
    }
    return response
  }

  private func filter(in target: HTTPTarget) throws(HubFailure) -> InstallationFilter {
    typealias Parameter = InstallationList.Parameter
    var filter = InstallationFilter(asOf: service.clock.now())
    if let item = target.queryItem(Parameter.tag) {
      filter.tag = Tag(rawValue: (item.value ?? "").trimmingBlanks)
    }
    filter.userID = target.queryItem(Parameter.user)?.value
    filter.search = try target.search(Parameter.search)
    if let item = target.queryItem(Parameter.platform) {
      filter.platform = try .named(item.value)
    }
    if let item = target.queryItem(Parameter.expired) {
      switch item.value?.lowercased() {
      case "true": filter.isExpired = true
      case "false": filter.isExpired = false
      default:
        throw HubFailure(status: 400, message: "The query parameter expired is true or false")
      }
    }
    return filter
  }

  /// The position at which a page starts.
  private func position(in target: HTTPTarget) throws(HubFailure) -> InstallationPosition? {
    guard let bytes = try target.continuation() else { return nil }
    guard let number = InstallationPosition(String(decoding: bytes, as: UTF8.self)), number > 0
    else { throw .invalidContinuation }
    return number
  }
}
