import HTTPServer
import HubCore
import NotificationHubs

/// What Belfry offers beyond the original (`docs/extensions.md`).
extension HubAPI {
  func listInstallations(_ call: HubCall) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.installations(
      hub: call.hub, try filter(in: target), after: try installation(in: target),
      limit: try pageSize(in: target))
    var response = call.replies.json(InstallationList.json(page.installations))
    if let next = page.next {
      response.headers.add(
        WireName.continuationToken, ContinuationToken.encode(Array(next.utf8)))
    }
    return response
  }

  func countAudience(_ call: HubCall) async throws -> HTTPResponse {
    let tags = call.request.target.queryItem(WireName.audienceTags)
    guard tags?.rawValue == nil || tags?.value != nil else {
      throw HubFailure(
        status: 400, message: "The query parameter tags is not valid percent-encoded text")
    }
    // There but empty must not mean everyone, as in a send's header.
    let count = try await service.audienceCount(
      hub: call.hub, tags: tags.map { $0.value ?? "" })
    return call.replies.json(count.json)
  }

  func eraseUser(_ call: HubCall) async throws -> HTTPResponse {
    call.replies.json(
      try await service.eraseUser(hub: call.hub, userID: call.requiredID()).json)
  }

  private func filter(in target: HTTPTarget) throws(HubFailure) -> InstallationFilter {
    typealias Parameter = InstallationList.Parameter
    var filter = InstallationFilter(asOf: service.clock.now())
    if let item = target.queryItem(Parameter.tag) {
      filter.tag = Tag(rawValue: Tag.trimmingBlanks(item.value ?? ""))
    }
    filter.userID = target.queryItem(Parameter.user)?.value
    if let item = target.queryItem(Parameter.platform) {
      filter.platform = try platform(item.value)
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

  /// A platform by its word in an installation.
  func platform(_ word: String?) throws(HubFailure) -> PushPlatform {
    guard let platform = PushPlatform(installationWord: word ?? "") else {
      throw HubFailure(
        status: 400, message: "The query parameter platform is no platform; say apns, fcmv1 …")
    }
    return platform
  }

  /// The installation after which a page starts.
  private func installation(in target: HTTPTarget) throws(HubFailure) -> String? {
    guard let item = target.queryItem(WireName.continuationParameter) else { return nil }
    guard let bytes = ContinuationToken.decode(item.value ?? ""),
      let id = String(validating: bytes, as: UTF8.self)
    else { throw HubFailure(status: 400, message: "The continuation token is invalid.") }
    return id
  }
}
