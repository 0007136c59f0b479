import CCurl
import Wire

/// One call in flight: the data that libcurl reads and writes. Used on the session's thread only.
final class Transfer {
  let batch: CallBatch
  let index: Int
  private var easy: EasyHandle?
  private let configuration: HTTPSessionConfiguration
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var body: UnsafeMutableRawBufferPointer?
  private var reply = HTTPReply(status: 0)
  private var headerBytes = 0
  private var isTooLarge = false
  private var isEnded = false
  private var refusedAddress = false
  private var openedSocket = false

  init(
    _ batch: CallBatch, index: Int, easy: EasyHandle, configuration: HTTPSessionConfiguration
  ) {
    self.batch = batch
    self.index = index
    self.easy = easy
    self.configuration = configuration
  }

  deinit { free() }

  private func free() {
    curl_slist_free_all(headers)
    headers = nil
    body?.deallocate()
    body = nil
  }

  /// Sets up the easy handle, which then refers to this object: both live until ``release()``.
  func prepare(anchors: TrustAnchors) throws(HTTPFailure) {
    guard let easy else { return }
    let call = batch.calls[index]
    guard let address = HTTPAddress(call.url), easy.set(CURLOPT_URL, call.url) else {
      throw HTTPFailure(.badCall, "the URL cannot be used")
    }
    guard address.scheme == "https" || configuration.allowsPlainHTTP else {
      throw HTTPFailure(.badCall, "the URL is not https")
    }
    setGround(easy, address, anchors: anchors)
    try setMessage(easy, call)
    setReceivers(easy)
  }

  private func setGround(_ easy: EasyHandle, _ address: HTTPAddress, anchors: TrustAnchors) {
    easy.set(CURLOPT_NOSIGNAL, 1)
    easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    easy.set(CURLOPT_FOLLOWLOCATION, 0)
    easy.set(CURLOPT_PATH_AS_IS, 1)
    easy.set(CURLOPT_TCP_KEEPALIVE, 1)
    easy.set(CURLOPT_SSL_VERIFYPEER, 1)
    easy.set(CURLOPT_SSL_VERIFYHOST, 2)
    easy.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    easy.set(CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(configuration.connectTimeout))
    if let silence = configuration.silenceTimeout {
      easy.set(CURLOPT_LOW_SPEED_LIMIT, 1)
      easy.set(CURLOPT_LOW_SPEED_TIME, max(1, Self.milliseconds(silence) / 1000))
    }
    // Without this libcurl reads `https_proxy` and its like.
    if !configuration.usesProxy || address.isOfThisMachine { _ = easy.set(CURLOPT_PROXY, "") }
    _ = belfry_curl_set_schemes(easy.pointer, configuration.allowsPlainHTTP ? 1 : 0)
    belfry_curl_set_quick_exit(easy.pointer)
    if !anchors.pem.isEmpty {
      _ = anchors.pem.withUnsafeBytes {
        belfry_curl_set_anchors(easy.pointer, $0.baseAddress, $0.count)
      }
    }
  }

  private func setMessage(_ easy: EasyHandle, _ call: HTTPCall) throws(HTTPFailure) {
    guard call.method.isHTTPToken, easy.set(CURLOPT_CUSTOMREQUEST, call.method) else {
      throw HTTPFailure(.badCall, "the method is no word")
    }
    if call.method == "HEAD" {
      easy.set(CURLOPT_NOBODY, 1)
    } else if call.method != "GET" || !call.body.isEmpty {
      let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: call.body.count, alignment: 1)
      copy.copyBytes(from: call.body)
      body = copy
      _ = belfry_curl_set_body(easy.pointer, copy.baseAddress, curl_off_t(copy.count))
    }
    // Fields that libcurl would add by itself; a caller's own field comes after and is sent.
    var lines = ["Expect:", "Accept:", "Content-Type:"]
    for (name, value) in call.headers {
      guard name.isHTTPToken, value.isHTTPFieldValue else {
        throw HTTPFailure(.badCall, "a header cannot be sent")
      }
      lines.removeAll { $0.dropLast().lowercased() == name.lowercased() }
      lines.append(value.isEmpty ? "\(name);" : "\(name): \(value)")
    }
    for line in lines {
      guard let longer = curl_slist_append(headers, line) else {
        throw HTTPFailure(.badCall, "a header cannot be sent")
      }
      headers = longer
    }
    _ = belfry_curl_set_headers(easy.pointer, headers)
  }

  private func setReceivers(_ easy: EasyHandle) {
    let owner = Unmanaged.passUnretained(self).toOpaque()
    _ = belfry_curl_set_receivers(easy.pointer, owner, receiveHeader, receiveBody)
    if configuration.allowsAddress != nil {
      _ = belfry_curl_set_opener(easy.pointer, owner, openSocket)
    }
  }

  /// libcurl's handle; nil once the call has its result.
  var handle: UnsafeMutableRawPointer? { easy?.pointer }

  /// Returns the handle, without any reference to this object.
  func release() -> EasyHandle? {
    guard let easy else { return nil }
    curl_easy_reset(easy.pointer)
    self.easy = nil
    free()
    return easy
  }

  private static func milliseconds(_ duration: Duration) -> Int {
    let milliseconds = duration / .milliseconds(1)
    return Int(max(1, min(milliseconds, Double(Int32.max))))
  }

}

extension Transfer {
  /// The result of the call.
  func result(_ code: CURLcode) -> Result<HTTPReply, HTTPFailure> {
    if isTooLarge { return .failure(HTTPFailure(.tooLarge, "the reply is too large")) }
    if isEnded { return .failure(HTTPFailure(.cancelled, "ended by its reader")) }
    if code == CURLE_OK, reply.status >= 200 { return .success(reply) }
    if refusedAddress, !openedSocket {
      return .failure(
        HTTPFailure(.refusedAddress, "the host leads to an address that is not allowed"))
    }
    let kind: HTTPFailure.Kind =
      switch code {
      case CURLE_COULDNT_RESOLVE_HOST: .resolve
      case CURLE_COULDNT_CONNECT: .connect
      case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR:
        .tls
      case CURLE_OPERATION_TIMEDOUT: .timeout
      case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .badCall
      default: .reset
      }
    let said = code == CURLE_OK ? "no reply" : String(cString: curl_easy_strerror(code))
    return .failure(HTTPFailure(kind, said))
  }

  /// Handles one line of the head. A status line restarts it: interim replies are skipped.
  fileprivate func take(header line: UnsafeRawBufferPointer) -> Bool {
    headerBytes += line.count
    guard headerBytes <= configuration.maxReplyHeaderBytes else {
      isTooLarge = true
      return false
    }
    let text = String(decoding: line, as: UTF8.self)
    if text.hasPrefix("HTTP/") {
      let status = text.split(separator: " ", maxSplits: 2).dropFirst().first
      reply = HTTPReply(status: status.flatMap { UInt16($0.prefix(3)) } ?? 0)
    } else if let colon = text.firstIndex(of: ":") {
      let blanks: Set<Character> = [" ", "\t", "\r", "\n", "\r\n"]
      let value = text[text.index(after: colon)...].drop { blanks.contains($0) }
      let end = value.lastIndex { !blanks.contains($0) }
      reply.headers.append((String(text[..<colon]), end.map { String(value[...$0]) } ?? ""))
    }
    return true
  }

  fileprivate func take(body bytes: UnsafeRawBufferPointer) -> Bool {
    if let receive = batch.calls[index].receive, (200..<300).contains(reply.status) {
      isEnded = !receive(Array(bytes))
      return !isEnded
    }
    guard bytes.count <= configuration.maxReplyBodyBytes - reply.body.count else {
      isTooLarge = true
      return false
    }
    reply.body.append(contentsOf: bytes)
    return true
  }

  /// Opens the socket for an allowed address.
  fileprivate func open(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    let wanted = address.pointee
    guard let allows = configuration.allowsAddress, let bytes = belfry_curl_address(address),
      let ip = IPAddress(bytes, length: Int(wanted.addrlen)), allows(ip)
    else {
      refusedAddress = true
      return belfry_curl_no_socket()
    }
    openedSocket = true
    return belfry_curl_socket(wanted.family, wanted.socktype, wanted.protocol)
  }

  fileprivate static func of(_ owner: UnsafeMutableRawPointer?) -> Transfer? {
    owner.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
  }
}

private let receiveHeader:
  @convention(c) (
    UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
  ) -> Int = { bytes, size, count, owner in
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return Transfer.of(owner)?.take(header: line) == true ? line.count : 0
  }

private let receiveBody:
  @convention(c) (
    UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
  ) -> Int = { bytes, size, count, owner in
    let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
    // Zero bytes taken of zero given is not an error.
    return Transfer.of(owner)?.take(body: part) == true ? part.count : (part.isEmpty ? 1 : 0)
  }

private let openSocket: curl_opensocket_callback = { owner, _, address in
  guard let transfer = Transfer.of(owner), let address else { return belfry_curl_no_socket() }
  return transfer.open(address)
}

/// Owns one of libcurl's easy handles.
final class EasyHandle {
  let pointer: UnsafeMutableRawPointer

  init?() {
    guard let pointer = curl_easy_init() else { return nil }
    self.pointer = pointer
  }

  deinit { curl_easy_cleanup(pointer) }

  func set(_ option: CURLoption, _ value: Int) {
    _ = belfry_curl_set_long(pointer, option, value)
  }

  func set(_ option: CURLoption, _ value: String) -> Bool {
    belfry_curl_set_string(pointer, option, value) == CURLE_OK
  }
}
