#!/bin/sh
# The REST catalog of Apache Iceberg 1.12.0 (Java; Spark, Trino and Flink use it) renews its token some time before it
# expires. Where the authorization server answers 503 then, it tries again for about 3.5 seconds and never afterwards: when
# the server is back it is not asked, and each call to the catalog has the old token until the process starts anew. It
# concerns every site whose authorization server is restarted or switched over under running jobs. Takes half a minute.
# Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"; mkdir -p src/main/java; cat > pom.xml <<'XML'
<project><modelVersion>4.0.0</modelVersion><groupId>f</groupId><artifactId>f</artifactId><version>1</version>
<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties>
<dependencies><dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-core</artifactId><version>1.12.0</version></dependency></dependencies>
</project>
XML
cat > src/main/java/Main.java <<'JAVA'
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.iceberg.rest.RESTCatalog;
public class Main {
  static volatile boolean isDown;
  static volatile int asked, refused, given;
  static volatile String last;
  static void answer(HttpExchange exchange, int status, String body) throws java.io.IOException {
    exchange.getResponseHeaders().set("content-type", "application/json");
    exchange.sendResponseHeaders(status, body.length());
    try (var out = exchange.getResponseBody()) { out.write(body.getBytes()); }
  }
  public static void main(String[] arguments) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/token", exchange -> {
      asked++;
      int number = isDown ? refused++ : ++given;
      if (isDown) answer(exchange, 503, "{\"error\":\"temporarily_unavailable\"}");
      else answer(exchange, 200, "{\"access_token\":\"" + number + "\",\"token_type\":\"Bearer\",\"expires_in\":3}");
    });
    server.createContext("/v1/config", call -> answer(call, 200, "{\"defaults\":{},\"overrides\":{}}"));
    server.createContext("/v1/namespaces", exchange -> {
      last = exchange.getRequestHeaders().getFirst("Authorization");
      answer(exchange, 200, "{\"namespaces\":[]}");
    });
    server.start();
    String url = "http://127.0.0.1:" + server.getAddress().getPort();
    RESTCatalog catalog = new RESTCatalog();
    catalog.initialize("c", Map.of("uri", url, "rest.auth.type", "oauth2", "credential", "id:secret", "scope", "tables",
        "oauth2-server-uri", url + "/token", "token-exchange-enabled", "false"));
    isDown = true;
    Thread.sleep(15_000); // five lives of the token
    int before = asked;
    isDown = false;
    Thread.sleep(15_000);
    catalog.listNamespaces();
    System.out.println("Iceberg 1.12.0: refused " + refused + " times, asked " + (asked - before) + " times afterwards, sent " + last);
    System.exit(refused > 1 && asked == before && last.equals("Bearer " + given) ? 0 : 1);
  }
}
JAVA
mvn -q -B compile dependency:build-classpath -Dmdep.outputFile=classpath > maven.log 2>&1 || { cat maven.log; exit 1; }
java -cp "target/classes:$(cat classpath)" Main 2> java.log || { cat java.log; exit 1; }
