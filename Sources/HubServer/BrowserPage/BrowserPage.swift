package import HTTPServer
import HubCore

/// A page for development that subscribes the browser that shows it, sends to it and displays what
/// arrives; served under ``path``, before the hub's own API.
///
/// Anyone who opens the page gets a token for listening. Therefore it is served only under this
/// machine's own names, and everything but static files only to pages of its own origin: neither a
/// page from elsewhere nor a foreign name that resolves to this machine gets access.
package struct BrowserPage: HTTPHandler {
  /// The path of the page. No hub name can begin with `$`.
  package static let path = "/$browser/"

  private let router: HTTPRouter
  private let next: any HTTPHandler

  /// - Parameter next: The handler for all other requests.
  package init(controller: any BrowserPageController, next: any HTTPHandler) {
    router = Self.router(BrowserPageCalls(controller: controller))
    self.next = next
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    guard request.target.pathSegments.first?.decoded == Self.folder else {
      return await next.respond(to: request)
    }
    var response = Self.refusal(of: request)
    if response == nil { response = await router.respond(to: request) }
    return (response ?? HTTPResponse(.notFound)).guarded(
      "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
      "worker-src 'self'")
  }

  package func look(atHead head: HTTPRequest) -> HTTPHeadLook {
    next.look(atHead: head)
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    next.reject(status, request: request)
  }

  private static let folder = String(path.dropFirst().dropLast())

  private static func router(_ calls: BrowserPageCalls) -> HTTPRouter {
    var router = HTTPRouter { status, _ in
      WebPageCalls.refusal(status, "There is no such thing at this page")
    }
    func on(
      _ method: HTTPMethod, _ path: String,
      _ action: @escaping @Sendable (HTTPRequest, String) async throws -> HTTPResponse
    ) {
      router.on(method, Self.path + path) { request, parameters in
        await WebPageCalls.answer(request, failing: "Belfry’s push service does not answer") {
          try await action(request, parameters["id"] ?? "")
        }
      }
    }
    on(.get, "settings") { request, _ in try await calls.settings(request) }
    on(.post, "subscriptions") { request, _ in try await calls.subscribe(request) }
    on(.get, "subscriptions/{id}") { _, id in try await calls.subscription(id) }
    on(.delete, "subscriptions/{id}") { _, id in try await calls.unsubscribe(id) }
    on(.get, "subscriptions/{id}/messages") { try await calls.messages($0, of: $1) }
    on(.post, "pushes") { request, _ in try await calls.push(request) }
    for file in WebFile.browserPage.values {
      router.on(.get, Self.path + file.name) { request, _ in file.response(to: request) }
    }
    if let index = WebFile.browserPage["index.html"] {
      router.on(.get, Self.path) { request, _ in
        // Without the trailing slash the page's relative URLs would resolve elsewhere.
        request.target.rawPath.last == UInt8(ascii: "/")
          ? index.response(to: request)
          : HTTPResponse(HTTPStatus(rawValue: 308), headers: ["Location": Self.path])
      }
    }
    return router
  }

  // MARK: Who may

  /// Refuses requests that are not addressed to one of this machine's own names, since a foreign
  /// page can have its name resolve to this machine ("DNS rebinding").
  private static func refusal(of request: HTTPRequest) -> HTTPResponse? {
    request.isAddressedToLoopback
      ? nil
      : HTTPResponse(
        403,
        text: "This page is for the machine that Belfry runs on. Open it at http://localhost or "
          + "http://127.0.0.1, with the port: browsers allow push only there and on https pages, "
          + "and Belfry gives its token to nobody from elsewhere.\n")
  }
}
