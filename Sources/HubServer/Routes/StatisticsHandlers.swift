import Foundation
import HTTPServer
import HubCore
import NotificationHubs

/// The statistics of a hub over time (`docs/extensions.md`).
struct StatisticsHandlers: RouteHandlers {
  let api: HubAPI

  func get(_ call: HubCall) async throws -> HTTPResponse {
    typealias Parameter = HubStatistics.Parameter
    let target = call.request.target
    var query = StatisticsQuery(
      from: try target.time(Parameter.from), to: try target.time(Parameter.to))
    if let item = target.queryItem(Parameter.step) {
      // A text that is not a number becomes 0, which is refused like any other invalid step.
      query.step = item.value.flatMap { Int($0) } ?? 0
    }
    return call.replies.json(try await service.statistics(hub: call.hub, query).json)
  }
}
