import HTTPServer
import HubCore
import NotificationHubs
import Wire

/// Registrations (docs/protocol/rest.md, section 3).
struct RegistrationHandlers: RouteHandlers {
  let api: HubAPI

  func create(_ call: HubCall) async throws -> HTTPResponse {
    let made = try await service.registrations.create(hub: call.hub, body: call.request.body)
    let address = api.address(of: call.request).replacingLast(with: "registrations")
      .appending(made.id)
    var response = entry(made, at: address, form: .written, call)
    response.headers.add(WireName.contentLocation, address.text)
    return response
  }

  func createID(_ call: HubCall) async throws -> HTTPResponse {
    let id = try await service.registrations.reserveID(hub: call.hub)
    // The path keeps the request's spelling: .NET asks for "registrationids" and a PHP client for
    // "registrationIDs", and each takes the last segment only after its own spelling.
    let address = api.address(of: call.request).appending(id)
    var response = call.replies.bare(.created)
    response.headers.add(WireName.location, address.text)
    return response
  }

  func put(_ call: HubCall) async throws -> HTTPResponse {
    let stored = try await service.registrations.put(
      hub: call.hub, id: call.requiredID(), condition: condition(of: call.request),
      body: call.request.body)
    return entry(stored, at: api.address(of: call.request), form: .written, call)
  }

  func get(_ call: HubCall) async throws -> HTTPResponse {
    let stored = try await service.registrations.get(hub: call.hub, id: call.requiredID())
    return entry(stored, at: api.address(of: call.request), form: .read, call)
  }

  func delete(_ call: HubCall) async throws -> HTTPResponse {
    let condition = try condition(of: call.request)
    guard condition != .none else { throw HubFailure(status: 412, message: ETagCondition.fault) }
    try await service.registrations.delete(
      hub: call.hub, id: call.requiredID(), condition: condition)
    return call.replies.bare(.ok)
  }

  func list(_ call: HubCall) async throws -> HTTPResponse {
    guard let filter = call.request.target.queryItem(WireName.filter) else {
      return try await list(.all, call)
    }
    do {
      return try await list(.device(RegistrationFilter(parsing: filter.value ?? "")), call)
    } catch let error as WireFormatError {
      throw HubFailure(status: 400, message: error.message)
    }
  }

  func listTagged(_ call: HubCall) async throws -> HTTPResponse {
    try await list(.tag(Tag(rawValue: call.requiredID().trimmingBlanks)), call)
  }

  // MARK: Parts

  private func condition(of request: HTTPRequest) throws(HubFailure) -> ETagCondition {
    do { return try ETagCondition(ifMatch: request.headers[WireName.ifMatch]) } catch {
      throw HubFailure(status: 412, message: error.message)
    }
  }

  private func entry(
    _ stored: StoredRegistration, at address: AtomAddress, form: Registration.Form, _ call: HubCall
  ) -> HTTPResponse {
    let registration = Registration(stored)
    var response = call.replies.atom(
      WireName.atomEntry,
      registration.entryXML(address: address, form: form, now: service.clock.now()))
    response.headers.add(WireName.etag, ETagCondition.weak(String(stored.etag)))
    return response
  }

  private func list(_ query: RegistrationQuery, _ call: HubCall) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.registrations.list(
      hub: call.hub, query, after: try target.position(), limit: try target.pageSize())
    var token: String?
    if page.hasMore, let last = page.registrations.last {
      token = withUnsafeBytes(of: last.number.bigEndian) { ContinuationToken.encode($0) }
    }
    let feed = Registration.feedXML(
      page.registrations.map(Registration.init), address: api.address(of: call.request),
      next: token, now: service.clock.now())
    var response = call.replies.atom(WireName.atomFeed, feed)
    if let token { response.headers.add(WireName.continuationToken, token) }
    return response
  }
}
