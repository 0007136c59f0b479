import Cryptography
import HTTP2
import HubCore
import NotificationHubs
import Wire

/// A batch that is being sent: the pushes by origin, their requests, and the results so far.
struct WebPushOutbox: Sendable {
  /// The pushes to one origin, as indexes into ``letters``.
  struct Delivery: Sendable {
    let origin: Origin
    let admission: WebPushHosts.Admission
    var letters: [Int] = []
  }

  private var outbox: PushOutbox<WebPushHeaders>
  private(set) var letters: [WebPushLetter] = []
  private(set) var deliveries: [Delivery] = []

  var results: [PushResult] { outbox.results }

  init(_ batch: PushBatch, hosts: WebPushHosts, now: Int64) {
    outbox = PushOutbox(
      batch, prepare: { body throws(PushRefusal) in try Self.headers(body, now: now) },
      check: { $0.isEmpty ? PushRefusal(PushVerdict(WebPushReply.badSubscription)) : nil })
    letters.reserveCapacity(outbox.sendable.count)
    var origins: [Origin] = []
    for index in outbox.sendable {
      do throws(PushRefusal) {
        try add(index, hosts: hosts, origins: &origins)
      } catch {
        outbox.results[index] = error.result
      }
    }
  }

  private static func headers(
    _ body: PushBody, now: Int64
  ) throws(PushRefusal) -> WebPushHeaders {
    guard body.bytes.count <= WebPushEncryptor.maxPlaintext else {
      throw PushRefusal(
        .invalidNotificationSize,
        "the message has \(body.bytes.count) bytes, more than \(WebPushEncryptor.maxPlaintext)")
    }
    let size = body.bytes.isEmpty ? 0 : body.bytes.count + WebPushEncryptor.overhead
    return try WebPushHeaders(body, size: size, now: now)
  }

  /// - Throws: The result of a push that cannot be sent.
  private mutating func add(
    _ index: Int, hosts: WebPushHosts, origins: inout [Origin]
  ) throws(PushRefusal) {
    let parts = outbox.handle(index).split(
      separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard parts.count == 3, let endpoint = WebPushEndpoint(parts[0], known: origins),
      let recipient = WebPushRecipient(p256dh: parts[1], auth: parts[2])
    else { throw PushRefusal(PushVerdict(WebPushReply.badSubscription)) }
    guard let admission = hosts.admission(of: endpoint.origin),
      hosts.allows(endpoint.path, of: endpoint.origin)
    else {
      throw PushRefusal(PushVerdict(.notAllowed, reason: hosts.refusal))
    }
    let letter = WebPushLetter(
      request: index, body: Int(outbox.batch.requests[index].body), recipient: recipient,
      path: endpoint.path)
    if let place = origins.lastIndex(of: endpoint.origin) {
      deliveries[place].letters.append(letters.count)
    } else {
      origins.append(endpoint.origin)
      deliveries.append(
        Delivery(origin: endpoint.origin, admission: admission, letters: [letters.count]))
    }
    letters.append(letter)
  }

  /// The index in the batch of a letter.
  func request(_ letter: Int) -> Int { letters[letter].request }

  /// Writes the requests of sealed letters, in the order of `indices`.
  func requests(
    _ indices: ArraySlice<Int>, sealed: WebPushSealed, origin: Origin, authorization: String
  ) -> HTTP2RequestBatch {
    var wire = HTTP2RequestBatch(authority: origin.authority, replyHeaders: ["retry-after"])
    let batch = outbox.batch
    let proof = HTTP2Field("authorization", authorization, indexing: .never)
    var fieldSets = [HTTP2RequestBatch.FieldSet?](repeating: nil, count: batch.bodies.count)
    let size = indices.reduce(0) {
      $0 + letters[$1].path.count + batch.bodies[letters[$1].body].bytes.count
        + WebPushEncryptor.overhead
    }
    wire.reserve(requests: indices.count, bytes: size)
    for index in indices {
      let letter = letters[index]
      guard case .sealed(let chunk, let range) = sealed.letters[index],
        let headers = outbox.message(letter.request)
      else { continue }
      let fields = fieldSets[letter.body] ?? wire.addFieldSet(headers.fields + [proof])
      fieldSets[letter.body] = fields
      let path = wire.write { $0 += letter.path }
      let body = wire.write { $0 += sealed.chunks[chunk][range] }
      wire.addRequest(path: path, fields: fields, body: body)
    }
    return wire
  }
}

/// The request headers that the body of a push determines (RFC 8030, section 5).
struct WebPushHeaders: Sendable {
  /// In the order they are sent.
  let fields: [HTTP2Field]

  /// Four weeks, in seconds: the longest time for which most services keep a message, and the
  /// default for a message without a time.
  private static let longestTTL: Int64 = 2_419_200
  private static let urgencies = ["very-low", "low", "normal", "high"]

  /// - Parameters:
  ///   - body: The body, whose headers `ttl`, `urgency` and `topic` are used; without a `ttl` its
  ///     expiry is.
  ///   - size: The size of the encrypted body, in bytes; 0 for a push without one.
  ///   - now: In seconds since 1970.
  init(_ body: PushBody, size: Int, now: Int64) throws(PushRefusal) {
    var fields = [HTTP2Field("ttl", try Self.ttl(body, now: now))]
    if let urgency = body.headers["urgency"]?.lowercased() {
      guard Self.urgencies.contains(urgency) else {
        throw PushRefusal.badFormat("Urgency is none of \(Self.urgencies.joined(separator: ", "))")
      }
      fields.append(HTTP2Field("urgency", urgency))
    }
    if let topic = body.headers["topic"] {
      guard (1...32).contains(topic.utf8.count), topic.utf8.allSatisfy(Self.isTopicByte) else {
        throw PushRefusal.badFormat("Topic is not 1 to 32 letters, digits, - and _")
      }
      fields.append(HTTP2Field("topic", topic))
    }
    if size > 0 {
      fields.append(HTTP2Field("content-encoding", "aes128gcm"))
      fields.append(HTTP2Field("content-type", "application/octet-stream"))
    }
    fields.append(HTTP2Field("content-length", String(size)))
    self.fields = fields
  }

  private static func ttl(_ body: PushBody, now: Int64) throws(PushRefusal) -> String {
    if let text = body.headers["ttl"] {
      guard (1...10).contains(text.utf8.count),
        text.utf8.allSatisfy(\.isDigit)
      else { throw PushRefusal.badFormat("TTL is no number of seconds") }
      return text
    }
    guard let expiry = body.expiry else { return String(longestTTL) }
    return String(expiry > now ? min(longestTTL, expiry - max(0, now)) : 0)
  }

  private static func isTopicByte(_ byte: UInt8) -> Bool {
    byte.isNameByte || byte == UInt8(ascii: "-")
  }
}

/// One push to be encrypted.
struct WebPushLetter: Sendable {
  /// Its index in the batch.
  let request: Int
  /// Index into the batch's bodies.
  let body: Int
  let recipient: WebPushRecipient
  /// The path of the endpoint, in the batch's handles.
  let path: ArraySlice<UInt8>
}

/// Encrypted pushes, with the errors of those that could not be encrypted.
struct WebPushSealed: Sendable {
  enum Letter: Sendable {
    /// The position of the body.
    case sealed(chunk: Int, Range<Int>)
    /// The subscription's key is not a point on the curve.
    case badKey
    /// An internal error.
    case failed
  }

  private(set) var chunks: [[UInt8]] = []
  /// By index of the letter.
  private(set) var letters: [Letter] = []

  /// Number of letters for a task. Encrypting a push takes some 40 microseconds, nearly all of it
  /// for two multiplications on the curve: the number is small enough for a batch to occupy all
  /// cores, and large enough for the cost of a task not to matter.
  private static let chunkSize = 64

  /// Encrypts every letter for its recipient, in parallel.
  /// - Parameter random: For the salts; the keys are made by OpenSSL.
  static func seal(
    _ letters: [WebPushLetter], bodies: [PushBody], random: HubRandom
  ) async -> WebPushSealed {
    let starts = Array(stride(from: 0, to: letters.count, by: chunkSize))
    let chunks = await withTaskGroup(of: Chunk.self) { group in
      for (number, start) in starts.enumerated() {
        let part = letters[start..<min(start + chunkSize, letters.count)]
        group.addTask { Chunk(part, bodies, number: number, random) }
      }
      var chunks = [Chunk?](repeating: nil, count: starts.count)
      for await chunk in group { chunks[chunk.number] = chunk }
      return chunks.compactMap { $0 }
    }
    var sealed = WebPushSealed()
    for chunk in chunks {
      sealed.chunks.append(chunk.bytes)
      sealed.letters += chunk.letters
    }
    return sealed
  }

  /// The letters that one task encrypts.
  private struct Chunk: Sendable {
    let number: Int
    var bytes: [UInt8] = []
    var letters: [Letter] = []

    init(
      _ letters: ArraySlice<WebPushLetter>, _ bodies: [PushBody], number: Int, _ random: HubRandom
    ) {
      self.number = number
      self.letters.reserveCapacity(letters.count)
      bytes.reserveCapacity(
        letters.reduce(0) { $0 + bodies[$1.body].bytes.count + WebPushEncryptor.overhead })
      let encryptor = try? WebPushEncryptor()
      for letter in letters { add(letter, bodies[letter.body].bytes, encryptor, random) }
    }

    private mutating func add(
      _ letter: WebPushLetter, _ plaintext: [UInt8], _ encryptor: WebPushEncryptor?,
      _ random: HubRandom
    ) {
      let start = bytes.count
      guard let encryptor else {
        letters.append(.failed)
        return
      }
      do throws(CryptographyError) {
        // A push without a message has no body.
        if !plaintext.isEmpty {
          try encryptor.encrypt(
            plaintext, to: letter.recipient, salt: random.bytes(WebPushEncryptor.saltCount),
            appendingTo: &bytes)
        }
        letters.append(.sealed(chunk: number, start..<bytes.count))
      } catch {
        letters.append(error.kind == .malformed ? .badKey : .failed)
      }
    }
  }
}
