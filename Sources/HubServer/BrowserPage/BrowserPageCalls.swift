import HTTPServer
import HubCore

/// The calls of the page's scripts: JSON in, JSON out.
struct BrowserPageCalls: Sendable {
  let controller: any BrowserPageController

  func settings(_ request: HTTPRequest) async throws -> HTTPResponse {
    let settings = try await controller.settings(
      host: request.headers["Host"] ?? "", isSecure: request.isSecure)
    return try WebPageCalls.json(settings)
  }

  func subscribe(_ request: HTTPRequest) async throws -> HTTPResponse {
    let wanted: LocalSubscription.Wanted = try WebPageCalls.body(of: request)
    return try WebPageCalls.json(try await controller.subscribe(wanted), status: .created)
  }

  func subscription(_ id: String) async throws -> HTTPResponse {
    try WebPageCalls.json(try await require(id))
  }

  func unsubscribe(_ id: String) async throws -> HTTPResponse {
    try await require(id)
    try await controller.unsubscribe(id)
    return HTTPResponse(.noContent)
  }

  /// Resumes after the event at which the page's connection broke (`Last-Event-ID`) or its last
  /// visit ended (`after`).
  func messages(_ request: HTTPRequest, of id: String) async throws -> HTTPResponse {
    let position = request.headers["Last-Event-ID"] ?? request.target.queryItem("after")?.value
    let events = controller.messages(of: try await require(id), after: position.flatMap { Int($0) })
    return WebPageCalls.stream(events)
  }

  func push(_ request: HTTPRequest) async throws -> HTTPResponse {
    let wanted: BrowserPush = try WebPageCalls.body(of: request)
    return try WebPageCalls.json(try await controller.push(wanted))
  }

  @discardableResult
  private func require(_ id: String) async throws -> LocalSubscription {
    guard let subscription = try await controller.subscription(id) else {
      throw HubFailure(status: 404, message: "There is no such subscription; subscribe again")
    }
    return subscription
  }
}
