import HTTPServer
import HubCore
import NotificationHubs

/// The activity log (`docs/extensions.md`).
struct ActivityHandlers: RouteHandlers {
  let api: HubAPI

  func list(_ call: HubCall) async throws -> HTTPResponse {
    try await activity(of: call.hub, call.request, call.replies)
  }

  func listAll(_ call: ManagementCall) async throws -> HTTPResponse {
    if let signedIn = call.signedIn, signedIn.roles.everywhere == nil { throw HubFailure.noRole }
    return try await activity(of: nil, call.request, call.replies)
  }

  private func activity(
    of hub: Hub?, _ request: HTTPRequest, _ replies: Replies
  ) async throws -> HTTPResponse {
    typealias Parameter = ActivityList.Parameter
    let target = request.target
    let query = ActivityQuery(
      from: try target.time(Parameter.from), until: try target.time(Parameter.until),
      actor: target.queryItem(Parameter.actor)?.value,
      action: target.queryItem(Parameter.action)?.value)
    let page = try await service.activity(
      query, hub: hub, after: try target.listPosition(), limit: try target.pageSize())
    var response = replies.json(ActivityList.json(page.lines))
    if let next = page.next {
      response.headers.add(WireName.continuationToken, ContinuationToken.encode(next))
    }
    return response
  }
}
