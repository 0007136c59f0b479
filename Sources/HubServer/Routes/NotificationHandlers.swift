import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Wire

/// Reads of notifications: telemetry (docs/protocol/rest.md, section 5.8) and, as extensions
/// (`docs/extensions.md`), outcomes of single devices, explanations and lists. The errors of a
/// notification, device by device, are the target of `PnsErrorDetailsUri` in its telemetry, as a
/// list of feedback documents (section 6).
struct NotificationHandlers: RouteHandlers {
  let api: HubAPI

  func get(_ call: HubCall) async throws -> HTTPResponse {
    let id = NotificationID(rawValue: try call.requiredID())
    let isExtended = call.request.readsExtensions
    var telemetry = try await service.notifications.telemetry(
      hub: call.hub, id: id, isExtended: isExtended)
    logText(telemetry.showsText, of: id, to: call)
    if !isExtended { telemetry.leaveOutExtensions() }
    telemetry.location = api.address(of: call.request, scheme: "sb")
    // An operator's cookie gives access to the list anyway, and a URL with its own token would give
    // access for an hour to anyone it is passed to.
    if telemetry.hasErrors, call.signedIn == nil, APIVersion.hasErrorDetails(call.request.target) {
      telemetry.pnsErrorDetailsURI = try await errorDetailsAddress(of: id, call)
    }
    return call.replies.document(.ok, Array(telemetry.xml.utf8))
  }

  /// The time for which the URL in telemetry gives access, in seconds. Each reply contains a new
  /// one.
  private static let lifetime: TimeInterval = 3600
  private static let pageSize = 500

  /// The list's URL with a token for it in the query. The original's URL leads to a blob that
  /// anyone who knows it can read.
  ///
  /// - Returns: `nil` if the hub has no policy left with the required right.
  private func errorDetailsAddress(of id: NotificationID, _ call: HubCall) async throws -> String? {
    let resource = api.address(of: call.hub, "messages/\(id.rawValue)/errors", call.request)
    let token = try await service.token(
      for: resource, hub: call.hub, right: .send, lifetime: Self.lifetime)
    return token.map { "\(resource)?\($0.fields)" }
  }

  func errors(_ call: HubCall) async throws -> HTTPResponse {
    let id = NotificationID(rawValue: try call.requiredID())
    let first = try await service.notifications.errors(
      of: id, hub: call.hub, after: 0, limit: Self.pageSize)
    var response = call.replies.document(.ok, [])
    response.body = .stream { [service] writer in
      var page = first
      while true {
        var text = ""
        for error in page.feedback { text += error.xml + "\n" }
        if !text.isEmpty { try await writer.write(text) }
        guard let next = page.next else { return }
        page = try await service.notifications.errors(
          of: id, hub: call.hub, after: next, limit: Self.pageSize)
      }
    }
    return response
  }

  func deviceOutcomes(_ call: HubCall) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.notifications.deviceOutcomes(
      of: NotificationID(rawValue: call.requiredID()), hub: call.hub, try outcomes(in: target),
      after: try target.position(), limit: try target.pageSize())
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
      filter.platform = try .named(item.value)
    }
    filter.installation = target.queryItem(Parameter.installation)?.value
    return filter
  }

  func explain(_ call: HubCall) async throws -> HTTPResponse {
    typealias Parameter = DeviceOutcomeList.Parameter
    let target = call.request.target
    let installation = target.queryItem(Parameter.installation)
    let registration = target.queryItem(Parameter.registration)
    let device: ExplainedDevice
    switch (installation, registration) {
    case (let item?, nil): device = .installation(try text(item.value, Parameter.installation))
    case (nil, let item?): device = .registration(try text(item.value, Parameter.registration))
    default:
      throw HubFailure(
        status: 400,
        message: "Say which device to explain: either the query parameter installation or "
          + "registration, with its id")
    }
    let id = NotificationID(rawValue: try call.requiredID())
    let explanation = try await service.explain(id, hub: call.hub, device: device)
    logText(explanation.showsText, of: id, to: call)
    return call.replies.json(explanation.json)
  }

  private func text(_ value: String?, _ name: String) throws(HubFailure) -> String {
    guard let value, !value.isEmpty, value.utf8.count <= 1024 else {
      throw HubFailure(status: 400, message: "The query parameter \(name) is no id")
    }
    return value
  }

  func list(_ call: HubCall) async throws -> HTTPResponse {
    try await listNotifications(call, .newestFirst)
  }

  func scheduled(_ call: HubCall) async throws -> HTTPResponse {
    try await listNotifications(call, .scheduled)
  }

  private func listNotifications(
    _ call: HubCall, _ order: NotificationOrder
  ) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.notifications.list(
      hub: call.hub, try notifications(in: target), in: order,
      after: try target.listPosition(), limit: try target.pageSize())
    logText(page.notifications.contains(where: \.showsText), to: call)
    var response = call.replies.json(
      NotificationList.json(page.notifications, unsearched: page.unsearched))
    if let next = page.next {
      response.headers.add(WireName.continuationToken, ContinuationToken.encode(next))
    }
    return response
  }

  private func notifications(in target: HTTPTarget) throws(HubFailure) -> NotificationFilter {
    typealias Parameter = NotificationList.Parameter
    var filter = NotificationFilter()
    if let item = target.queryItem(Parameter.state) {
      filter.states = []
      for word in (item.value ?? "").split(separator: ",", omittingEmptySubsequences: false) {
        let state = NotificationState.allCases.first {
          $0.rawValue.lowercased() == word.lowercased()
        }
        guard let state else {
          let names = NotificationState.allCases.map(\.rawValue).joined(separator: ", ")
          throw HubFailure(
            status: 400, message: "The query parameter state is no state; they are \(names)")
        }
        filter.states?.insert(state)
      }
    }
    if let item = target.queryItem(Parameter.kind) {
      filter.kind = NotificationSummary.Kind.all.first { $0.rawValue == item.value?.lowercased() }
      guard filter.kind != nil else {
        let names = NotificationSummary.Kind.all.map(\.rawValue).joined(separator: ", ")
        throw HubFailure(
          status: 400, message: "The query parameter kind is no kind; they are \(names)")
      }
    }
    if let item = target.queryItem(Parameter.tag) {
      filter.tag = Tag(rawValue: (item.value ?? "").trimmingBlanks)
    }
    filter.search = try target.search(Parameter.search)
    filter.from = try target.time(Parameter.from)
    filter.until = try target.time(Parameter.until)
    return filter
  }
}

extension NotificationTelemetry {
  /// Removes what the original's document does not have.
  fileprivate mutating func leaveOutExtensions() {
    (dueTime, title, text, textState) = (nil, nil, nil, nil)
  }
}

extension SharedAccessSignature {
  /// The token's fields as a query.
  fileprivate var fields: Substring { text.drop { $0 != " " }.dropFirst() }
}

extension HTTPRequest {
  /// The token in the query of a URL, in the form of a header; `nil` if the query contains none.
  var tokenInQuery: String? {
    guard target.queryItem("sig") != nil, let query = target.rawQuery else { return nil }
    return "SharedAccessSignature " + String(decoding: query, as: UTF8.self)
  }
}
