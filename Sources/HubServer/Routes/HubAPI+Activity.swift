import HTTPServer
import HubCore
import NotificationHubs

/// The activity log (`docs/extensions.md`).
extension HubAPI {
  func listActivity(_ call: HubCall) async throws -> HTTPResponse {
    try await activity(of: call.hub, call.request, call.replies)
  }

  func listAllActivity(_ call: ManagementCall) async throws -> HTTPResponse {
    if let signedIn = call.signedIn, signedIn.roles.everywhere == nil { throw HubFailure.noRole }
    return try await activity(of: nil, call.request, call.replies)
  }

  private func activity(
    of hub: Hub?, _ request: HTTPRequest, _ replies: Replies
  ) async throws -> HTTPResponse {
    typealias Parameter = ActivityList.Parameter
    let target = request.target
    let query = ActivityQuery(
      from: try time(Parameter.from, in: target), until: try time(Parameter.until, in: target),
      actor: target.queryItem(Parameter.actor)?.value,
      action: target.queryItem(Parameter.action)?.value)
    let page = try await service.activity(
      query, hub: hub, after: try listPosition(in: target), limit: try pageSize(in: target))
    var response = replies.json(ActivityList.json(page.lines))
    if let next = page.next {
      response.headers.add(WireName.continuationToken, ContinuationToken.encode(next))
    }
    return response
  }

  /// Writes a request's action to the activity log, now that its result is known. The reply waits
  /// for it; if the store is unavailable, only the server's own log records it.
  func keep(_ activity: ActivityNote?, _ response: HTTPResponse) async {
    guard let activity else { return }
    do {
      try await service.keep(activity, status: response.status.rawValue)
    } catch {
      owner?.unlogged(error)
      let line = activity.entry(status: response.status.rawValue).line
      observer?.log(
        .warning, "activity.lost", error.message ?? "the store refused",
        [
          ("hub", .text(line.hub ?? "")), ("actor", .text(line.actor)),
          ("action", .text(line.action)), ("status", .number(line.status)),
        ])
    }
  }
}
