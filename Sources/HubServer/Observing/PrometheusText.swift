import HubCore

/// Writes metrics in Prometheus' text format, version 0.0.4.
/// - SeeAlso: <https://prometheus.io/docs/instrumenting/exposition_formats/>
struct PrometheusText {
  static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  enum Kind: String {
    case counter, gauge, histogram
  }

  private(set) var text = ""

  /// Begins a metric; its samples follow, and no other metric's come between them.
  mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
    let help = help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
  }

  mutating func sample(_ name: String, _ labels: [(String, String)], _ value: Double) {
    text += name
    if !labels.isEmpty {
      text += "{" + labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",") + "}"
    }
    text += " \(Self.number(value))\n"
  }

  /// A metric with one sample.
  mutating func single(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
    begin(name, kind, help)
    sample(name, [], value)
  }

  mutating func histogram(_ name: String, _ help: String, _ histogram: Histogram) {
    begin(name, .histogram, help)
    var total = 0
    for (bound, count) in zip(histogram.bounds, histogram.counts) {
      total += count
      sample(name + "_bucket", [("le", Self.number(bound))], Double(total))
    }
    sample(name + "_bucket", [("le", "+Inf")], Double(histogram.count))
    sample(name + "_sum", [], histogram.sum)
    sample(name + "_count", [], Double(histogram.count))
  }

  private static func escaped(_ value: String) -> String {
    value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
  }

  private static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    if value == value.rounded(), abs(value) < 1e15 { return String(Int64(value)) }
    return String(value)
  }
}
