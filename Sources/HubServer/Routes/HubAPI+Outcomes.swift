import HTTPServer
import HubCore
import NotificationHubs

/// What became of a notification for single devices (`docs/extensions.md`).
extension HubAPI {
  func listDeviceOutcomes(_ call: HubCall) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.deviceOutcomes(
      of: NotificationID(rawValue: call.requiredID()), hub: call.hub, try outcomes(in: target),
      after: try position(in: target), limit: try pageSize(in: target))
    var response = call.replies.json(DeviceOutcomeList.json(page.devices))
    if let next = page.next {
      response.headers.add(
        WireName.continuationToken,
        withUnsafeBytes(of: next.bigEndian) { ContinuationToken.encode($0) })
    }
    return response
  }

  private func outcomes(in target: HTTPTarget) throws(HubFailure) -> OutcomeFilter {
    typealias Parameter = DeviceOutcomeList.Parameter
    var filter = OutcomeFilter()
    if let item = target.queryItem(Parameter.outcome) {
      let word = item.value?.lowercased() ?? ""
      guard
        let outcome = NotificationOutcome.allCases.first(where: { $0.name.lowercased() == word })
      else {
        let names = NotificationOutcome.allCases.map(\.name).joined(separator: ", ")
        throw HubFailure(
          status: 400, message: "The query parameter outcome is no outcome; they are \(names)")
      }
      filter.outcomes = [outcome]
    }
    if let item = target.queryItem(Parameter.platform) {
      filter.platform = try platform(item.value)
    }
    filter.installation = target.queryItem(Parameter.installation)?.value
    return filter
  }
}
