import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Wire

extension HTTPRequest {
  /// Whether the client reads elements and properties that the original's documents do not have.
  /// Clients of the original get none: some call a setter for each name that they find.
  var readsExtensions: Bool {
    headers[WireName.extensions].map { $0.lowercased() == "true" } ?? false
  }
}

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

  func listNotifications(
    _ call: HubCall, _ order: NotificationOrder
  ) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.notifications(
      hub: call.hub, try notifications(in: target), in: order,
      after: try notification(in: target), limit: try pageSize(in: target))
    var response = call.replies.json(NotificationList.json(page.notifications))
    if let next = page.next {
      let bytes = [next.time, next.number].flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) }
      response.headers.add(WireName.continuationToken, ContinuationToken.encode(bytes))
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

  func listRemovals(_ call: HubCall) async throws -> HTTPResponse {
    let wave = try wave(in: call.request.target)
    return call.replies.json(try await service.removedDevices(hub: call.hub, wave).json)
  }

  func restoreRemovals(_ call: HubCall) async throws -> HTTPResponse {
    let wave = try wave(in: call.request.target)
    return call.replies.json(try await service.restoreDevices(hub: call.hub, wave).json)
  }

  private func wave(in target: HTTPTarget) throws(HubFailure) -> RemovalWave {
    var wave = RemovalWave()
    if let item = target.queryItem("platform") { wave.platform = try platform(item.value) }
    if let since = try time("since", in: target) { wave.since = since }
    return wave
  }

  private func filter(in target: HTTPTarget) throws(HubFailure) -> InstallationFilter {
    typealias Parameter = InstallationList.Parameter
    var filter = InstallationFilter(asOf: service.clock.now())
    if let item = target.queryItem(Parameter.tag) {
      filter.tag = Tag(rawValue: (item.value ?? "").trimmingBlanks)
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
    filter.from = try time(Parameter.from, in: target)
    filter.until = try time(Parameter.until, in: target)
    return filter
  }

  private func time(_ name: String, in target: HTTPTarget) throws(HubFailure) -> Date? {
    guard let item = target.queryItem(name) else { return nil }
    // The sign of an offset, sent raw, has become a blank.
    guard let date = WireDate.parse((item.value ?? "").replacing(" ", with: "+")) else {
      throw HubFailure(
        status: 400, message: "The query parameter \(name) is a time such as 2030-01-31T18:00:00Z")
    }
    return date
  }

  /// The notification after which a page starts.
  private func notification(
    in target: HTTPTarget
  ) throws(HubFailure) -> NotificationPosition? {
    guard let item = target.queryItem(WireName.continuationParameter) else { return nil }
    guard let bytes = ContinuationToken.decode(item.value ?? ""), bytes.count == 16 else {
      throw HubFailure(status: 400, message: "The continuation token is invalid.")
    }
    func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
      Int64(bitPattern: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
    return NotificationPosition(time: number(bytes[..<8]), number: number(bytes[8...]))
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
