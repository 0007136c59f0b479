import Foundation
import HTTPServer
import Wire

/// The control API: its routes, and the encoding of requests and errors (docs/protocol/emulator.md,
/// section 2).
struct ControlAPI: Sendable {
  let core: EmulatorCore
  /// PEM text.
  let authority: String
  /// Open streams by the connection's slot, for `GET /v1/connections`.
  let openStreams: @Sendable () -> [Int: Int]
  /// Called after any change that may affect the listeners: clock and faults.
  let afterChange: @Sendable () -> Void
  let heartbeat: Duration

  typealias Action = @Sendable (ControlRequest) throws(ControlError) -> HTTPResponse
  /// Adds a route below `/v1`.
  typealias Adder = (HTTPMethod, String, @escaping Action) -> Void

  var router: HTTPRouter {
    var router = HTTPRouter { status, request in
      Self.refusal(status, request)
    }
    func on(_ method: HTTPMethod, _ pattern: String, _ action: @escaping Action) {
      router.on(method, "/v1" + pattern) { request, parameters in
        do throws(ControlError) {
          return try action(ControlRequest(request: request, parameters: parameters))
        } catch {
          return Self.response(error.body, status: HTTPStatus(rawValue: error.status))
        }
      }
    }
    addGeneral(on)
    addApps(on)
    addDevices(on)
    addRecords(on)
    addFaults(on)
    for service in core.services { service.addRoutes(to: self, on) }
    return router
  }

  static func response(_ json: JSONValue, status: HTTPStatus = .ok) -> HTTPResponse {
    HTTPResponse(
      status, headers: ["Content-Type": "application/json"], body: .bytes(json.jsonBytes))
  }

  private static func refusal(_ status: HTTPStatus, _ request: HTTPRequest) -> HTTPResponse {
    let (code, message) =
      switch status.rawValue {
      case 404: ("not_found", "there is nothing at \(request.target)")
      case 405:
        ("method_not_allowed", "\(request.method.rawValue) does not work at \(request.target)")
      case 413: ("too_large", "the request body is too large")
      case 503: ("stopping", "the emulator is stopping")
      default: ("refused", "the request was refused with status \(status.rawValue)")
      }
    return response(
      ControlError(status: status.rawValue, code: code, message: message).body, status: status)
  }

  private func addGeneral(_ on: Adder) {
    on(.get, "/health") { _ in Self.response(["status": "ok"]) }
    on(.get, "/info") { _ in
      Self.response(
        core.withState { state in
          state.addresses.json
            + ["seed": .string(String(state.options.seed)), "clock": state.clock.json]
        })
    }
    on(.get, "/ca.pem") { _ in
      HTTPResponse(.ok, text: authority, contentType: "application/x-pem-file")
    }
    on(.get, "/clock") { _ in Self.response(core.withState { $0.clock.json }) }
    on(.post, "/clock") { request throws(ControlError) in
      let change = try ClockChange(try request.json())
      let json = core.withState { state in
        change.apply(to: &state.clock)
        state.settleDue()
        return state.clock.json
      }
      afterChange()
      return Self.response(json)
    }
    on(.post, "/reset") { request throws(ControlError) in
      let body = try JSONReader(try request.json(orEmpty: true), known: ["keep"])
      let keep = try body.strings("keep") ?? []
      guard keep.allSatisfy({ $0 == "apps" }) else {
        throw body.invalid("keep", "may hold only \"apps\"")
      }
      core.withState { $0.reset(keepApps: !keep.isEmpty) }
      afterChange()
      return Self.response(["status": "reset"])
    }
  }
}

/// A request to the control API.
struct ControlRequest: Sendable {
  let request: HTTPRequest
  let parameters: HTTPPathParameters

  /// The body as JSON.
  /// - Parameter orEmpty: Treats an empty body as an empty object.
  func json(orEmpty: Bool = false) throws(ControlError) -> JSONValue {
    if orEmpty, request.body.isEmpty { return .object([]) }
    do {
      return try JSONValue.read(request.body, uniqueNames: true)
    } catch {
      throw .invalidJSON(error)
    }
  }

  /// A part of the path.
  func path(_ name: String) throws(ControlError) -> String {
    guard let text = parameters[name] else { throw .notFound("such \(name)") }
    return text
  }

  func query(_ name: String) -> String? { request.target.queryItem(name)?.value }

  /// A query item that is a whole number from 0.
  func number(_ name: String) throws(ControlError) -> Int? {
    guard let text = query(name) else { return nil }
    guard let number = Int(text), number >= 0 else {
      throw .invalidValue(name, "must be a whole number from 0, not '\(text)'")
    }
    return number
  }

  /// The position at which a stream continues: `Last-Event-ID`, or else `after`.
  func after() throws(ControlError) -> Int? {
    guard let text = request.headers["Last-Event-ID"] else { return try number("after") }
    guard let number = Int(text), number >= 0 else {
      throw .invalidValue("Last-Event-ID", "must be a whole number from 0, not '\(text)'")
    }
    return number
  }
}

extension EmulatorClock {
  fileprivate var json: JSONValue { ["mode": isManual ? "manual" : "real", "now": JSONValue(now)] }
}

/// `POST /v1/clock`.
private struct ClockChange: Sendable {
  private enum Mode: String, CaseIterable, Sendable { case real, manual }

  private let mode: Mode?
  private let now: Int64?
  private let advance: Int64?

  init(_ json: JSONValue) throws(ControlError) {
    let body = try JSONReader(json, known: ["mode", "now", "advance"])
    mode = try body.word("mode", Mode.self)
    now = try body.int("now", in: 0...EmulatorClock.latest)
    advance = try body.int("advance", in: 0...EmulatorClock.latest)
    if mode == nil, advance == nil { throw .missing("mode' or 'advance") }
    if now != nil, mode != .manual {
      throw body.invalid("now", "goes with \"mode\":\"manual\" only")
    }
  }

  func apply(to clock: inout EmulatorClock) {
    switch mode {
    case .real: clock.setReal()
    case .manual: clock.setManual(now: now ?? clock.now)
    case nil: break
    }
    if let advance { clock.advance(by: advance) }
  }
}
