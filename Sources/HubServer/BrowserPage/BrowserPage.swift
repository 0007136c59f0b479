package import HTTPServer
import HubCore

/// A page that subscribes the browser it is opened in, sends to it and shows what arrives; under
/// ``path``, in front of the hub's own API. For development.
///
/// Anyone who opens the page gets a token for listening. So it answers only to this machine's own
/// names, and what is more than a file only to pages of its own origin: no page from elsewhere, nor
/// a name that somebody points at this machine, gets at it.
package struct BrowserPage: HTTPHandler {
  /// No hub's name can begin with `$`.
  package static let path = "/$browser/"

  private let router: HTTPRouter
  private let next: any HTTPHandler

  /// - Parameter next: Answers what is not the page's.
  package init(desk: any BrowserPageDesk, next: any HTTPHandler) {
    router = Self.router(BrowserPageCalls(desk: desk))
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
        // Without the slash the page's own addresses would lead elsewhere.
        request.target.rawPath.last == UInt8(ascii: "/")
          ? index.response(to: request)
          : HTTPResponse(HTTPStatus(rawValue: 308), headers: ["Location": Self.path])
      }
    }
    return router
  }

  // MARK: Who may

  /// Refuses what does not come by one of this machine's own names: a page from elsewhere can have
  /// its own name lead here ("DNS rebinding").
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
