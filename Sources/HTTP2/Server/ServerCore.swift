/// The part of a server that callers and its loops share.
final class ServerCore: Sendable {
  let port: UInt16

  init(
    _ configuration: HTTP2ServerConfiguration, handler: any HTTP2ServerHandler
  ) throws(HTTP2ServerError) {
    throw HTTP2ServerError(.address, "\(configuration.host): the server is not built yet")
  }

  func start() {}
  func stop() {}
  func stopAndWait() async {}
  func stopListening() {}
  func resumeListening() throws(HTTP2ServerError) {}
  var connections: [HTTP2ServerConnection] { [] }
}

/// One thread of a server.
final class ServerLoop: Sendable {
  enum Command: Sendable {
    case respond(HTTP2ServerResponse, Int32)
    case reset(Int32, UInt32)
    case settings(Int?, Int?)
    case goAway(Int32, UInt32, [UInt8])
    case abort
    case close
    case stall
  }

  func perform(_ command: Command, on connection: HTTP2ServerConnection) {}
}
