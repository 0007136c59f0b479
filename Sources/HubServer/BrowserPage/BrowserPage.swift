import Foundation
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
    return Self.guarded(response ?? HTTPResponse(.notFound))
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    next.reject(status, request: request)
  }

  private static let folder = String(path.dropFirst().dropLast())

  private static func router(_ calls: BrowserPageCalls) -> HTTPRouter {
    var router = HTTPRouter { status, _ in
      BrowserPageCalls.refusal(status, "There is no such thing at this page")
    }
    func on(
      _ method: HTTPMethod, _ path: String,
      _ action: @escaping @Sendable (HTTPRequest, String) async throws -> HTTPResponse
    ) {
      router.on(method, Self.path + path) { request, parameters in
        await BrowserPageCalls.answer(request) { try await action(request, parameters["id"] ?? "") }
      }
    }
    on(.get, "settings") { request, _ in try await calls.settings(request) }
    on(.post, "subscriptions") { request, _ in try await calls.subscribe(request) }
    on(.get, "subscriptions/{id}") { _, id in try await calls.subscription(id) }
    on(.delete, "subscriptions/{id}") { _, id in try await calls.unsubscribe(id) }
    on(.get, "subscriptions/{id}/messages") { try await calls.messages($0, of: $1) }
    on(.post, "pushes") { request, _ in try await calls.push(request) }
    router.on(.get, Self.path) { request, _ in
      // Without the slash the page's own addresses would lead elsewhere.
      request.target.rawPath.last == UInt8(ascii: "/")
        ? BrowserPageFile.index.response
        : HTTPResponse(HTTPStatus(rawValue: 308), headers: ["Location": Self.path])
    }
    for file in BrowserPageFile.all {
      router.on(.get, Self.path + file.name) { _, _ in file.response }
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

  /// Only what comes from here runs here, and nobody else shows the page in a frame.
  private static func guarded(_ response: HTTPResponse) -> HTTPResponse {
    var response = response
    let policy = [
      "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'",
      "connect-src 'self'", "worker-src 'self'", "base-uri 'none'", "form-action 'none'",
      "frame-ancestors 'none'",
    ]
    response.headers["Content-Security-Policy"] = policy.joined(separator: "; ")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response
  }
}

/// A file of the page, as the compiler put it into the program.
struct BrowserPageFile: Sendable {
  /// In the page's folder; empty for the page itself.
  let name: String
  let type: String
  let bytes: [UInt8]

  static let index = Self(
    name: "", type: "text/html; charset=utf-8", bytes: PackageResources.index_html)

  /// Those that the page names.
  static let all = [
    Self(name: "style.css", type: "text/css; charset=utf-8", bytes: PackageResources.style_css),
    Self(name: "icon.svg", type: "image/svg+xml", bytes: PackageResources.icon_svg),
    script("hub.js", PackageResources.hub_js), script("page.js", PackageResources.page_js),
    script("local.js", PackageResources.local_js),
    script("webpush.js", PackageResources.webpush_js),
    script("worker.js", PackageResources.worker_js),
  ]

  private static func script(_ name: String, _ bytes: [UInt8]) -> Self {
    Self(name: name, type: "text/javascript; charset=utf-8", bytes: bytes)
  }

  /// Asked for again each time: after an update of Belfry page and worker must fit.
  var response: HTTPResponse {
    HTTPResponse(
      .ok, headers: ["Content-Type": type, "Cache-Control": "no-cache"], body: .bytes(bytes))
  }
}
